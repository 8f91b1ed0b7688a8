package llm

import (
	"net/http"
	"strings"
)

// Where responses of Bedrock tell usage: those of Converse in a usage of their own, those
// of Invoke in headers and in the last event of a stream, whatever else the model tells
// in its own format. What was read from a cache or written to it is not in the input.

// bedrockMember returns the node of the member of n, which is one of Bedrock's, with the
// name.
func (n node) bedrockMember(name []byte) node {
	switch n {
	case nodeChunk:
		if string(name) == "bytes" {
			return nodePacked
		}
	case nodeBedrock:
		return bedrockTop(name)
	case nodeBedrockPart:
		return bedrockPart(name)
	case nodeBedrockUsage:
		return bedrockNumber(name)
	case nodeBedrockDelta:
		switch string(name) {
		case "reasoningContent":
			return nodeBedrockThought
		case "toolUse":
			return nodeFunction
		}
		return nodeBlockDelta.member(name)
	case nodeBedrockContent:
		switch string(name) {
		case "reasoningContent":
			return nodeBedrockThought
		case "toolUse":
			return nodeFunction
		}
		return nodeContent.contentMember(name)
	case nodeBedrockThought:
		switch string(name) {
		case "text":
			return nodeText
		case "reasoningText":
			return nodeBedrockThought
		}
	}
	return nodeNone
}

// bedrockTop returns the node of a member of a whole response or an event: of Converse's
// own, or one of the formats of the models behind Invoke.
func bedrockTop(name []byte) node {
	switch string(name) {
	case "usage", "amazon-bedrock-invocationMetrics":
		return nodeBedrockUsage
	case "output", "metadata", "contentBlockDelta", "contentBlockStart": // the latter are of Nova's streams
		return nodeBedrockPart
	case "delta":
		return nodeBedrockDelta
	case "start":
		return nodeBedrockContent
	case "outputText", "generation", "completion": // Titan's, Llama's, older ones of Anthropic's
		return nodeText
	}
	return topMember(name)
}

// bedrockPart returns the node of a member of what is one level below the top.
func bedrockPart(name []byte) node {
	switch string(name) {
	case "message": // its content is below
		return nodeBedrockPart
	case "content", "start":
		return nodeBedrockContent
	case "delta":
		return nodeBedrockDelta
	case "usage":
		return nodeBedrockUsage
	}
	return nodeNone
}

// bedrockNumber returns the node of a member that tells usage: of Converse's and Nova's,
// of the metrics of an invocation, or of the model's own.
func bedrockNumber(name []byte) node {
	switch string(name) {
	case "inputTokens", "inputTokenCount":
		return inputTokens
	case "outputTokens", "outputTokenCount":
		return outputTokens
	case "cacheReadInputTokens", "cacheReadInputTokenCount":
		return cacheReadTokens
	case "cacheWriteInputTokens", "cacheWriteInputTokenCount":
		return cacheWriteTokens
	}
	return nodeUsage.number(name)
}

// bareARN returns the name of the model, or of the profile that leads to it in several
// regions, of which a name is the ARN. Names of other resources stay as they are, for
// these have quotas of their own, or hide which model they are of.
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

// bedrockHeaders are the headers in which an answer that is not streamed tells usage.
var bedrockHeaders = [...]struct {
	name string
	node node
}{
	{"X-Amzn-Bedrock-Input-Token-Count", inputTokens},
	{"X-Amzn-Bedrock-Output-Token-Count", outputTokens},
	{"X-Amzn-Bedrock-Cache-Read-Input-Token-Count", cacheReadTokens},
	{"X-Amzn-Bedrock-Cache-Write-Input-Token-Count", cacheWriteTokens},
}

// readHeaders reads the usage that headers of Bedrock's tell. They are of an answer that
// was complete before it was sent, so no text in its body is more than they tell. Where
// they tell input alone, nothing was generated: it is an embedding.
func (t *tally) readHeaders(h http.Header) {
	for i, header := range bedrockHeaders {
		v, ok := whole([]byte(h.Get(header.name)))
		switch {
		case ok:
			t.said.say(header.node, v)
			t.behind = t.behind && header.node != outputTokens
		case i == 0:
			return
		case header.node == outputTokens && !t.said.has(outputTokens):
			t.said.say(outputTokens, 0)
		}
	}
}
