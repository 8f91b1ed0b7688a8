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
