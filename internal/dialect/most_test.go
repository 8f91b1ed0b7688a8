package dialect

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

func TestMost(t *testing.T) {
	read := func(e Endpoint, body string) *Request {
		r, err := e.Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	chat := Endpoint{Provider: OpenAI, API: Chat}
	for _, c := range []struct {
		name          string
		r             *Request
		m             llm.Maxima
		input, output int
		ok            bool
	}{
		{"bytes", read(chat, `{"model":"mine","max_tokens":7}`), llm.Maxima{}, 31 + openAIOverhead, 7, true},
		{"the window", read(chat, `{"model":"mine","max_tokens":7,"n":3}`), llm.Maxima{Context: 10}, 10, 21, true},
		{"the model's maximum", read(chat, `{"model":"mine"}`), llm.Maxima{Context: 10, Output: 4}, 10, 4, true},
		{"no maximum", read(chat, `{"model":"mine"}`), llm.Maxima{Context: 10}, 10, 10, true},
		{"nothing is known", read(chat, `{"model":"mine"}`), llm.Maxima{}, 16 + openAIOverhead, 0, false},
		{"no answer", read(Endpoint{API: Embeddings}, `{"input":"a"}`), llm.Maxima{Context: 10, Output: 4}, 13 + templateOverhead, 0, true},
		{"unknown", &Request{}, llm.Maxima{Context: 10, Output: 4}, 0, 0, false},
		{"stored", read(Endpoint{API: Responses}, `{"previous_response_id":"r"}`), llm.Maxima{}, 0, 0, false},
		{"stored, with a window", read(Endpoint{API: Responses}, `{"previous_response_id":"r"}`), llm.Maxima{Context: 10, Output: 4}, 10, 4, true},
	} {
		input, output, ok := c.r.Most(c.m)
		if input != c.input || output != c.output || ok != c.ok {
			t.Errorf("%s: %d, %d, %v, want %d, %d, %v", c.name, input, output, ok, c.input, c.output, c.ok)
		}
	}
}
