package dialect_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, openrouterStreams...) }

var openrouterStreams = []meterStream{
	{
		name: "chat, OpenRouter's error in a stream", api: dialect.Chat,
		body: sse(delta(`"content":"Hel"`), `{"id":"gen-1","object":"chat.completion.chunk","error":{"code":429,"message":"Rate limited","metadata":{"code":"x"}},`+
			`"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
		want:  llm.Usage{Input: -1, Output: 1, Tier: "standard"},
		fault: "429",
		truth: 5,
	},
	{
		name: "parts: OpenRouter, with its charge", api: dialect.Chat,
		body: sse(delta(`"content":"Hi"`), chunk(`[]`, `{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00014495,"is_byok":false,`+
			`"cost_details":{"upstream_inference_cost":0.00014495,"upstream_inference_prompt_cost":0.0001},"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":100,"audio_tokens":0}}`), "[DONE]"),
		want:  llm.Usage{Input: 194, Cached: 10, CacheWrite: 100, Output: 2, Cost: 144_950, CostTold: true, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "parts: OpenRouter, with the caller's own key", api: dialect.Chat,
		body: `{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.95,"is_byok":true,` +
			`"cost_details":{"upstream_inference_cost":19}}}`,
		want:  llm.Usage{Input: 194, Output: 2, Cost: 19_950_000_000, CostTold: true, Exact: true},
		truth: 2,
	},
}

// costOf returns the cost that a meter reads.
func costOf(number string) (int64, bool) {
	u := meter(dialect.Chat, nil, `{"usage":{"cost":`+number+`}}`).Usage
	return u.Cost, u.CostTold
}

// A cost is read exactly, and rounded up to a billionth of a dollar.
func TestACostIsReadExactly(t *testing.T) {
	for number, want := range map[string]int64{
		"0": 0, "0.0": 0, "1": 1e9, "0.95": 950_000_000, "1e-9": 1, "1E-10": 1, "0.0000000011": 2, "1.000000000": 1e9, "12.5e+1": 125e9, "0e60": 0,
		"0.000014000000000000001": 14_001, "9007199.254740991": 1<<53 - 1, "1e-60": 1, "0.00": 0,
		"9007199.2547409911": -1, "9007199.254740992": -1, "1e7": -1, "1e60": -1, "1e61": -1, "0e1000": 0, "0e1001": -1, "1e-1000": 1, "1e999": -1, "-1": -1, "-0.1": -1, "1e": -1, "1e1e1": -1, "1.2.3": -1, "NaN": -1,
		"Infinity": -1, "0x10": -1, ".": -1, "e5": -1, "null": -1, "true": -1, `"0.5"`: -1, "1_000": -1, "1e-1_0": -1, "0." + strings.Repeat("0", 70) + "1": -1,
	} {
		if got, told := costOf(number); told != (want >= 0) || told && got != want {
			t.Errorf("%s is read as %d, %t, want %d", number, got, told, want)
		}
	}
}

// Every number that JSON allows is read as package big reads it.
func TestEveryCostIsReadAsPackageBigReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`(0|[1-9][0-9]{0,12})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "number")
		r, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("%s is no number", number)
		}
		want, fits := naiveBillionths(r)
		if got, told := costOf(number); told != fits || told && got != want {
			t.Fatalf("%s is read as %d, %t, want %d, %t", number, got, told, want, fits)
		}
	})
}
