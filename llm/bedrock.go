package llm

import (
	"net/http"
	"strings"
)

// bareARN returns the name of the foundation model or the inference profile in an ARN. Every other
// name stays as it is: other resources have quotas of their own, or do not show their model.
func bareARN(name string) string {
	if !strings.HasPrefix(name, "arn:") {
		return name
	}
	for _, kind := range []string{":foundation-model/", ":inference-profile/"} {
		if _, bare, ok := strings.Cut(name, kind); ok && bare != "" {
			return bare
		}
	}
	return name
}

// bedrockHeaders are the headers with the usage of a response that is not streamed.
var bedrockHeaders = [...]struct {
	name string
	node node
}{
	{"X-Amzn-Bedrock-Input-Token-Count", inputTokens},
	{"X-Amzn-Bedrock-Output-Token-Count", outputTokens},
	{"X-Amzn-Bedrock-Cache-Read-Input-Token-Count", cacheReadTokens},
	{"X-Amzn-Bedrock-Cache-Write-Input-Token-Count", cacheWriteTokens},
}

// readHeaders reads usage from Bedrock's headers. They are those of a complete answer, so the text
// in its body adds nothing to them. Where they have input tokens alone, the response is an
// embedding, and nothing was generated. The service tier is in a header of streams, too.
func (t *tally) readHeaders(h http.Header) {
	if told := tierOf([]byte(h.Get(tierHeader))); told != tierUntold {
		t.tier = told
	}
	for i, header := range bedrockHeaders {
		v, ok := whole([]byte(h.Get(header.name)))
		switch {
		case ok:
			t.reported.set(header.node, v)
			t.textSince = t.textSince && header.node != outputTokens
		case i == 0:
			return
		case header.node == outputTokens && !t.reported.has(outputTokens):
			t.reported.set(outputTokens, 0)
		}
	}
}
