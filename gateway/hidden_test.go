package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Wire formats of streams that have the client's usage, or more than usage, in the chunk
// that has no choices.
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

// The chunk with OpenRouter's usage and cost was hidden from its SDK, which sends no
// stream_options because OpenRouter always tells; llama.cpp's timings vanished with it.
func TestNothingIsHiddenThatTheClientWouldHaveGot(t *testing.T) {
	for _, s := range ofServers {
		sent := ""
		r := newRigBefore(t, "providers: {x: {kind: "+s.kind+", base_url: MOCK}}\n", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, s.stream)
		}))
		if a := r.post(t, "/x/v1/chat/completions", unasked); a.body != s.stream {
			t.Errorf("%s: got %s", s.name, a.body)
		}
		if asked := strings.Contains(sent, "stream_options"); asked != (s.kind == "compatible") {
			t.Errorf("%s: sent %s", s.name, sent)
		}
		if last := r.last(t); last.Input != 11 || last.Output != 6 || !last.Exact {
			t.Errorf("%s: recorded as %+v", s.name, last)
		}
	}
}
