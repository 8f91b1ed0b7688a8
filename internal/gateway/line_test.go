package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const (
	chat     = "/openai/v1/chat/completions"
	messages = "/anthropic/v1/messages"
)

// A call of each API passes, and is settled with the usage that its provider reports.
func TestCalls(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	for _, c := range []struct{ model, path, body string }{
		{"gpt-4o", chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello there"}]}`},
		{"gpt-4o", chat, `{"model":"best","stream":true,"messages":[{"role":"user","content":"Hello there"}]}`},
		{"claude-sonnet-4", messages, `{"model":"claude-sonnet-4","max_tokens":50,"messages":[{"role":"user","content":"Hello there"}]}`},
		{"gemini-2.5-pro", "/gemini/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"text":"Hello there"}]}]}`},
		{"llama", "/local/api/chat", `{"model":"llama","messages":[{"role":"user","content":"Hello there"}]}`},
	} {
		before := r.provider.Totals()[c.model]
		a := r.post(t, c.path, c.body)
		if a.status != 200 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
			continue
		}
		if strings.Contains(c.body, "stream") && strings.Contains(a.body, `"usage":{`) {
			t.Errorf("the client sees usage that it has not asked for: %s", a.body)
		}
		last, after := r.last(t), r.provider.Totals()[c.model]
		want := Record{Input: after.Input - before.Input, Output: after.Output - before.Output, Exact: true}
		testkit.Equal(t, "the usage of "+c.path, want, Record{Input: last.Input, Output: last.Output, Exact: last.Exact})
	}
}
