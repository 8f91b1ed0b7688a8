package llm

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func weight(t testing.TB, text string) (w Weight) {
	t.Helper()
	if text != "" {
		var err error
		if w, err = ParseWeight(text); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestParseWeight(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1": "1", "5": "5", "0.1": "0.1", "1.25": "1.25", "0.0001": "0.0001", "1000": "1000", "1000.0000": "1000", "007": "7", "2.50": "2.5", "0.0": "0",
		"": "-", "1000.0001": "-", "1001": "-", "0.00001": "-", "1.": "-", ".5": "-", "-1": "-", "+1": "-", "1e3": "-", "1_0": "-", " 1": "-", "NaN": "-", "1.2.3": "-", "00001": "-", "x": "-",
	} {
		w, err := ParseWeight(text)
		if got := w.String(); (err == nil) != (want != "-") || err == nil && (got != want || !w.IsSet()) {
			t.Errorf("%q is %q, %v: want %q", text, got, err, want)
		}
	}
}

func TestTokenWeightsJSON(t *testing.T) {
	w := TokenWeights{CachedInput: weight(t, "0"), Output: weight(t, "5.0001")}
	text, err := json.Marshal(w)
	if want := `{"cached_input":0,"output":5.0001}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back TokenWeights
	if err := json.Unmarshal(text, &back); err != nil || back != w {
		t.Errorf("got %+v, %v", back, err)
	}
	for _, bad := range []string{`{"output":"5"}`, `{"output":-1}`, `{"output":0.12345}`, `{"output":1e1}`, `{"output":[]}`, `{"output":true}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if err := json.Unmarshal([]byte(`{"output":null}`), &back); err != nil || back.Output.IsSet() {
		t.Errorf("null: %+v, %v", back, err)
	}
}

// anyWeight draws a weight, which may not be set.
func anyWeight(t *rapid.T, name string) Weight {
	return Weight(rapid.OneOf(rapid.SampledFrom([]uint32{0, 0, 1, weightOne + 1, MaxWeight*weightOne + 1}), rapid.Uint32Range(0, MaxWeight*weightOne+1)).Draw(t, name))
}

func anyWeights(t *rapid.T) TokenWeights {
	return TokenWeights{anyWeight(t, "cached"), anyWeight(t, "write"), anyWeight(t, "output"), anyWeight(t, "reasoning")}
}

// rat returns a weight as a fraction.
func (w Weight) rat(t *rapid.T, unset string) *big.Rat {
	text := w.String()
	if text == "" {
		text = unset
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

// roundUp returns the sum of tokens by their weights, rounded up, up to 2^53.
func roundUp(terms ...*big.Rat) int64 {
	sum := new(big.Rat)
	for i := 0; i < len(terms); i += 2 {
		sum.Add(sum, new(big.Rat).Mul(terms[i], terms[i+1]))
	}
	n := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	n.Div(n, sum.Denom())
	if n.Cmp(big.NewInt(1<<53)) > 0 {
		return 1 << 53
	}
	return n.Int64()
}

func tokensRat(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// Count is what package big computes.
func TestCountProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWeights(t)
		part := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		var tk Tokens
		tk.Input, tk.Output = part("input", 1<<53), part("output", 1<<53)
		tk.FreeInput, tk.FreeOutput = part("free input", tk.Input), part("free output", tk.Output)
		tk.Cached = part("cached", tk.Input-tk.FreeInput)
		tk.CacheWrite = part("write", tk.Input-tk.FreeInput-tk.Cached)
		tk.Reasoning = part("reasoning", tk.Output-tk.FreeOutput)

		output := w.Output.rat(t, "1")
		reasoning := output
		if w.Reasoning.IsSet() {
			reasoning = w.Reasoning.rat(t, "")
		}
		wantIn := roundUp(tokensRat(tk.Input-tk.FreeInput-tk.Cached-tk.CacheWrite), tokensRat(1),
			tokensRat(tk.Cached), w.CachedInput.rat(t, "1"), tokensRat(tk.CacheWrite), w.CacheWrite.rat(t, "1"))
		wantOut := roundUp(tokensRat(tk.Output-tk.FreeOutput-tk.Reasoning), output, tokensRat(tk.Reasoning), reasoning)
		in, out := w.Count(tk)
		if in != wantIn || out != wantOut {
			t.Fatalf("%+v counts as %d and %d, want %d and %d", tk, in, out, wantIn, wantOut)
		}
	})
}

func TestCountBounds(t *testing.T) {
	w := TokenWeights{Output: weight(t, "5")}
	for _, tt := range []struct {
		t         Tokens
		in, out   int64
		unweighed [2]int64
	}{
		{Tokens{Input: -1, Output: -1, FreeInput: 5, Reasoning: 7}, -1, -1, [2]int64{-1, -1}},
		{Tokens{Input: 10, Output: 4, FreeInput: -3, FreeOutput: math.MinInt}, 10, 20, [2]int64{10, 4}},
		{Tokens{Input: 10, Output: 4, FreeInput: 30, FreeOutput: math.MaxInt}, 0, 0, [2]int64{0, 0}},
		{Tokens{Input: 10, Output: 4, Cached: math.MaxInt, CacheWrite: -1, Reasoning: 99}, 10, 20, [2]int64{10, 4}},
		{Tokens{Input: math.MaxInt, Output: math.MaxInt}, 1 << 53, 1 << 53, [2]int64{1 << 53, 1 << 53}},
	} {
		if in, out := w.Count(tt.t); in != tt.in || out != tt.out {
			t.Errorf("%+v counts as %d and %d", tt.t, in, out)
		}
		if in, out := (TokenWeights{}).Count(tt.t); [2]int64{in, out} != tt.unweighed {
			t.Errorf("%+v counts as %d and %d without weights", tt.t, in, out)
		}
	}
}
