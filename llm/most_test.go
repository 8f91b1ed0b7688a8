package llm

import (
	"math"
	"testing"
)

func TestMostOutput(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Request
		want int
	}{
		{"the request says it", Request{Endpoint: Endpoint{API: Responses, Model: "gpt-4o"}, MaxOutput: 100}, 100},
		{"of each answer", Request{Endpoint: Endpoint{API: Chat, Model: "gpt-4o"}, MaxOutput: 100, Answers: 3}, 300},
		{"the model's maximum", Request{Endpoint: Endpoint{API: Chat, Model: "gpt-4o-mini"}, Answers: 2}, 32_768},
		{"a name with a provider, in capitals", Request{Endpoint: Endpoint{API: Chat, Model: "openai/GPT-4.1-nano"}}, 32_768},
		{"the longer name", Request{Endpoint: Endpoint{API: Responses, Model: "gpt-5-pro-2025-10-06"}}, 272_000},
		{"an unknown model", Request{Endpoint: Endpoint{API: Responses, Model: "mine"}}, 128_000},
		{"no answer at all", Request{Endpoint: Endpoint{API: Embeddings, Model: "text-embedding-3-small"}}, 0},
		{"nonsense", Request{Endpoint: Endpoint{API: Chat}, MaxOutput: math.MaxInt, Answers: math.MaxInt}, math.MaxInt32 * math.MaxInt32},
	} {
		if got := c.r.MostOutput(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

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
		m             Maxima
		input, output int
		ok            bool
	}{
		{"bytes", read(chat, `{"model":"mine","max_tokens":7}`), Maxima{}, 31, 7, true},
		{"the window", read(chat, `{"model":"mine","max_tokens":7,"n":3}`), Maxima{Context: 10}, 10, 21, true},
		{"the model's maximum", read(chat, `{"model":"mine"}`), Maxima{Context: 10, Output: 4}, 10, 4, true},
		{"no maximum", read(chat, `{"model":"mine"}`), Maxima{Context: 10}, 10, 10, true},
		{"nothing is known", read(chat, `{"model":"mine"}`), Maxima{}, 16, 0, false},
		{"no answer", read(Endpoint{API: Embeddings}, `{"input":"a"}`), Maxima{Context: 10, Output: 4}, 10, 0, true},
		{"unknown", &Request{}, Maxima{Context: 10, Output: 4}, 0, 0, false},
		{"stored", read(Endpoint{API: Responses}, `{"previous_response_id":"r"}`), Maxima{}, 0, 0, false},
		{"stored, with a window", read(Endpoint{API: Responses}, `{"previous_response_id":"r"}`), Maxima{Context: 10, Output: 4}, 10, 4, true},
	} {
		input, output, ok := c.r.Most(c.m)
		if input != c.input || output != c.output || ok != c.ok {
			t.Errorf("%s: %d, %d, %v, want %d, %d, %v", c.name, input, output, ok, c.input, c.output, c.ok)
		}
	}
}
