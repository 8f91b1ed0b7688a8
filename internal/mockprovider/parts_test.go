package mockprovider

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// partsMock asks for every part that a server can report.
const partsMock = "output=30 reasoning=4 cached=3 cache-write=2 cache-write-hour=1 input-audio=4 cached-audio=2 input-image=1 output-audio=20 output-image=5 tier=priority cost=0.0000125"

// A meter reads the parts that each API reports.
func TestParts(t *testing.T) {
	openAI := llm.Usage{Cached: 3, InputAudio: 4, CachedAudio: 2, InputImage: 1, Output: 34, Reasoning: 4, OutputAudio: 20, OutputImage: 5, Tier: "priority", Exact: true}
	routed := openAI
	routed.Cost, routed.CostTold = 12_500, true
	anthropic := llm.Usage{Cached: 3, CacheWrite: 2, CacheWriteHour: 1, Output: 34, Reasoning: 4, Tier: "priority", Exact: true}
	bedrock := anthropic
	bedrock.Reasoning = 0
	want := map[string]llm.Usage{
		"chat": openAI, "azure": openAI, "openrouter": routed, "responses": openAI, "gemini": openAI, "gemini-array": openAI, "messages": anthropic, "converse": bedrock,
	}
	converse := api{
		name: "converse", url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", stream: "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream",
		body: `{"messages":[{"role":"user","content":[{"text":"Say something long, please."}]}]%s}`,
	}
	for _, a := range append([]api{converse}, apis...) {
		for _, stream := range []bool{false, true} {
			want, ok := want[a.name]
			if !ok {
				continue
			}
			c := start(t, Config{})
			url, body := a.request(stream, 0)
			response, text := c.call(url, partsMock, body)
			e, _ := dialect.Recognize("POST", response.Request.URL)
			m := dialect.NewMeter(e.API, response.Header)
			_, _ = m.Write([]byte(text))
			got := m.Usage()
			want.Input = c.Totals()["m"].Input
			want.Units = c.Totals()["m"].Units
			if got != want {
				t.Errorf("%s, stream %t: got %+v\nwant %+v\n%s", a.name, stream, got, want, text)
			}
		}
	}
}

// No part is more than its whole, and words that make no sense are refused.
func TestPartsBounded(t *testing.T) {
	all := Parts{CacheWriteHour: 9, InputAudio: 9, CachedAudio: 9, InputImage: 9, OutputAudio: 9, OutputImage: 9}
	want := Parts{CacheWriteHour: 1, InputAudio: 5, CachedAudio: 2, OutputAudio: 4}
	if got := all.within(usage{input: 5, cached: 2, cacheWrite: 1, output: 7, reasoning: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	c := start(t, Config{})
	for _, word := range []string{"cost=-1", "cost=x", "cost=Inf", "cost=", "cost=.5", "input-audio=-1"} {
		if response, _ := c.call(chatURL, word, chatBody); response.StatusCode != 400 {
			t.Errorf("%s: %d", word, response.StatusCode)
		}
	}
}
