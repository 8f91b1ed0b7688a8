package dialect

import (
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

// The weights 1 and [llm.MaxWeight].
const weightOfOne, heaviestWeight = llm.Weight(10_001), llm.Weight(llm.MaxWeight*10_000 + 1)

// An estimate counts at least as much as any usage of the same size, unless some of it was expected
// to be free; AtMost cuts it to the bound that it is given, and not much further.
func TestDearestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := func(name string) llm.Weight {
			return rapid.OneOf(rapid.SampledFrom([]llm.Weight{0, 0, 1, weightOfOne, heaviestWeight}), rapid.Custom(func(t *rapid.T) llm.Weight {
				return llm.Weight(rapid.Uint32Range(0, uint32(heaviestWeight)).Draw(t, "any"))
			})).Draw(t, name)
		}
		w := llm.TokenWeights{CachedInput: weight("cached weight"), CacheWrite: weight("write weight"), Output: weight("output weight"), Reasoning: weight("reasoning weight")}
		p := rapid.SampledFrom([]llm.Provider{OpenAI, Anthropic, Gemini, Bedrock}).Draw(t, "provider")
		n := func(name string) int { return rapid.IntRange(0, 1<<rapid.IntRange(0, 53).Draw(t, name)).Draw(t, name) }
		u := llm.Usage{Input: n("input"), Output: n("output")}
		u.Cached = min(n("cached"), u.Input)
		u.CacheWrite = min(n("write"), u.Input-u.Cached)
		u.Reasoning = min(n("reasoning"), u.Output)
		in, out := w.Count(TokensOf(u, p, w))

		dearest := w.Dearest(TokensOf(llm.Usage{Input: u.Input, Output: u.Output}, p, llm.TokenWeights{}))
		mostIn, mostOut := w.Count(dearest)
		if in > mostIn || out > mostOut || max(in, out) > max(w.Most(u.Input), w.Most(u.Output)) {
			t.Fatalf("%+v counts as %d and %d, its estimate as %d and %d", u, in, out, mostIn, mostOut)
		}
		if again := w.Dearest(dearest); again != dearest {
			t.Fatalf("%+v becomes %+v", dearest, again)
		}
		if least := w.LeastInput(u.Input); !(CachedIsFree(p) && !w.CachedInput.IsSet()) && int64(least) > in {
			t.Fatalf("%+v counts as %d, at least as %d", u, in, least)
		}

		input, output := n("most input"), n("most output")
		cut := w.AtMost(dearest, input, output)
		cutIn, cutOut := w.Count(cut)
		heaviest := int64(llm.MaxWeight + 1)
		if cutIn > int64(input) || cutOut > int64(output) || cut.Input != u.Input || cut.Output != u.Output || cut.FreeInput < 0 || cut.FreeOutput < 0 {
			t.Fatalf("%+v at most %d and %d is %+v", dearest, input, output, cut)
		}
		if w.CachedInput <= max(w.CacheWrite, weightOfOne) && cutIn+heaviest < min(mostIn, int64(input)) || cutOut+heaviest < min(mostOut, int64(output)) {
			t.Fatalf("%+v at most %d and %d counts as %d and %d", dearest, input, output, cutIn, cutOut)
		}
	})
}

// What a weight is set for is not free.
func TestTokensOf(t *testing.T) {
	u := llm.Usage{Input: 100, Cached: 60, CacheWrite: 30, Output: 50, Reasoning: 20}
	for _, tt := range []struct {
		p       llm.Provider
		w       llm.TokenWeights
		in, out int64
	}{
		{OpenAI, llm.TokenWeights{}, 100, 50},
		{Anthropic, llm.TokenWeights{}, 40, 50},
		{Gemini, llm.TokenWeights{}, 100, 0},
		{OpenAI, llm.TokenWeights{CachedInput: parseWeight(t, "0.1")}, 46, 50},
		{Anthropic, llm.TokenWeights{CachedInput: parseWeight(t, "0.1")}, 46, 50},
		{Anthropic, llm.TokenWeights{CachedInput: parseWeight(t, "0")}, 40, 50},
		{Anthropic, llm.TokenWeights{CacheWrite: parseWeight(t, "1.25")}, 48, 50}, // 10 and 37.5
		{Bedrock, llm.TokenWeights{Output: parseWeight(t, "5")}, 40, 250},
		{Bedrock, llm.TokenWeights{Output: parseWeight(t, "5"), Reasoning: parseWeight(t, "1")}, 40, 170},
		{Gemini, llm.TokenWeights{Output: parseWeight(t, "1")}, 100, 50},
		{Gemini, llm.TokenWeights{Reasoning: parseWeight(t, "1")}, 100, 20},
	} {
		if in, out := tt.w.Count(TokensOf(u, tt.p, tt.w)); in != tt.in || out != tt.out {
			t.Errorf("%s, %+v: counts as %d and %d, want %d and %d", tt.p, tt.w, in, out, tt.in, tt.out)
		}
	}
}

func parseWeight(t *testing.T, text string) llm.Weight {
	t.Helper()
	w, err := llm.ParseWeight(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
