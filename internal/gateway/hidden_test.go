package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Streams in which the chunk without choices has usage that the client expects, or more than
// usage.
var ofServers = []struct{ name, kind, stream string }{
	{"OpenRouter", "openrouter", `data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4o","object":"chat.completion.chunk","created":1794733200,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}

data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4o","object":"chat.completion.chunk","created":1794733200,"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"cost":0.00014,"cost_details":{"upstream_inference_cost":null}}}

data: [DONE]

`},
	{"llama.cpp", "compatible", `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{"content":"Hi"}}],"created":1794733200,"id":"chatcmpl-x","model":"qwen3","system_fingerprint":"b6000-x","object":"chat.completion.chunk"}

data: {"choices":[],"created":1794733200,"id":"chatcmpl-x","model":"qwen3","system_fingerprint":"b6000-x","object":"chat.completion.chunk","usage":{"completion_tokens":6,"prompt_tokens":11,"total_tokens":17},"timings":{"prompt_n":11,"predicted_n":6,"predicted_per_second":92.1}}

data: [DONE]

`},
	{"vLLM", "compatible", `data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1794733200,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"total_tokens":17,"completion_tokens":6}}

data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1794733200,"model":"m","choices":[],"usage":{"prompt_tokens":11,"total_tokens":17,"completion_tokens":6}}

data: [DONE]

`},
	{"Groq", "groq", `data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1794733200,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17}}}

data: [DONE]

`},
}

// The gateway hides no chunk that the client would get without the gateway: OpenRouter's
// usage and cost, which its SDK expects without asking, and llama.cpp's timings.
func TestNothingIsHiddenThatTheClientWouldHaveGot(t *testing.T) {
	for _, s := range ofServers {
		sent := ""
		r := newRigBefore(t, "providers: {x: {kind: "+s.kind+", base_url: MOCK}}\n", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, s.stream)
		}))
		testkit.Equal(t, "the stream of "+s.name, s.stream, r.post(t, "/x/v1/chat/completions", unasked).body)
		if asked := strings.Contains(sent, "stream_options"); asked != (s.kind == "compatible") {
			t.Errorf("%s: sent %s", s.name, sent)
		}
		last := r.last(t)
		testkit.Equal(t, "the usage of "+s.name, Record{Input: 11, Output: 6, Exact: true}, Record{Input: last.Input, Output: last.Output, Exact: last.Exact})
	}
}
