package admin

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// What calls under way have reserved of a limit is listed apart from what was used, until they end.
func TestReservedApart(t *testing.T) {
	l, err := project.NewWithConfig(project.Config{Default: &project.Limit{DollarsPerDay: price.Dollar, TokensPerMinute: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used, d, err := l.Take(t.Context(), project.Call{Project: "p", Tokens: llm.Tokens{Input: 100}, Dollars: price.Dollar / 10})
	if err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	used.CommitPriced(llm.Tokens{Input: 100}, price.Dollar/10)
	open, d, err := l.Take(t.Context(), project.Call{Project: "p", Tokens: llm.Tokens{Input: 100}, Dollars: price.Dollar / 10, MostDollars: price.Dollar / 2})
	if err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	check := func(when string, tokens, dollars int64) {
		t.Helper()
		d, err := l.Peek(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range NewWindows(d, "p") {
			want := map[string]int64{"tokens_per_minute": tokens, "dollars_per_day": dollars}[w.Name]
			if w.Reserved != want {
				t.Errorf("%s: %d of %s are reserved; want %d", when, w.Reserved, w.Name, want)
			}
		}
		for _, s := range d.Windows() {
			want := map[string]float64{"dollars_per_day": float64(dollars) / price.Dollar}[s.Window.Name]
			if got := windowDimension(&s, time.Now()); got.Reserved != want {
				t.Errorf("%s: %v of %s are reserved in the overview; want %v", when, got.Reserved, got.Name, want)
			}
		}
	}
	check("while a call is under way", 0, price.Dollar/2)
	open.Cancel()
	check("after it", 0, 0)
}
