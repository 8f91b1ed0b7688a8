package llm_test

import (
	"net/http"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Bedrock's headers report the usage of a model, whatever its own format reports.
func TestInvokeHeadersReportUsage(t *testing.T) {
	told := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set("X-Amzn-Bedrock-"+pairs[i]+"-Token-Count", pairs[i+1])
		}
		return h
	}
	for _, c := range []struct {
		name string
		api  llm.API
		h    http.Header
		body string
		want llm.Usage
	}{
		{"Llama", llm.Invoke, told("Input", "7", "Output", "9"), `{"generation":"Hello there","stop_reason":"stop"}`, llm.Usage{Input: 7, Output: 9, Exact: true}},
		{"with a cache", llm.Invoke, told("Input", "7", "Output", "9", "Cache-Read-Input", "3", "Cache-Write-Input", "2"), `{}`, llm.Usage{Input: 12, Cached: 3, CacheWrite: 2, Output: 9, Exact: true}},
		{"embeddings", llm.Invoke, told("Input", "7"), `{"embedding":[0.1]}`, llm.Usage{Input: 7, Exact: true}},
		{"the body counts", llm.Invoke, told("Input", "7"), `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":7,"output_tokens":9}}`, llm.Usage{Input: 7, Output: 9, Exact: true}},
		{"text without a number", llm.Invoke, told("Input", "7"), `{"generation":"Hello"}`, llm.Usage{Input: 7, Output: 1}},
		{"nonsense", llm.Invoke, told("Input", "-7", "Output", "x"), `{}`, llm.Usage{Input: -1}},
		{"another API", llm.Chat, told("Input", "7", "Output", "9"), `{}`, llm.Usage{Input: -1}},
	} {
		if got := meter(c.api, c.h, c.body).Usage; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The meter allocates nothing for a frame.
func TestFramesAllocateNothing(t *testing.T) {
	stream := []byte(invokeFrames(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`))
	m := llm.NewMeter(llm.Invoke, nil)
	m.Write(stream)
	if n := testing.AllocsPerRun(100, func() { m.Write(stream) }); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}
