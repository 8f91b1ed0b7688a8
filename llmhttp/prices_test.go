package llmhttp_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// The budget of a project in dollars is never exceeded, however many calls there are at once, and
// each call is settled at what its parts cost.
func TestBudgetsInDollars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := mockprovider.Reply{Output: 20, Cached: 30, Delay: time.Second}
		w := llmhttptest.New(t, llmhttptest.Script(reply), llmhttptest.Ample)
		each, err := price.New(price.Terms{Rates: price.Rates{Input: 2 * price.Dollar, CachedInput: price.Dollar / 5, Output: 10 * price.Dollar}})
		if err != nil {
			t.Fatal(err)
		}
		const budget = price.Dollar / 10
		projects, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{Dollars: budget}})
		if err != nil {
			t.Fatal(err)
		}
		client := w.Through(llmhttp.Reject(), llmhttp.Prices(price.Known().With(price.Override{Model: model, Price: each}), nil),
			llmhttp.Projects(projects, func(*http.Request) string { return "p" }))

		const cost = 8*2_000 + 30*200 + 20*10_000 // 38 tokens of the prompt, of which 30 are cached
		body := `{"model":"some-model","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat(" word", 37) + `"}]}`
		var all sync.WaitGroup
		var passed atomic.Int64
		for range 300 {
			all.Go(func() {
				response, err := client.Post("https://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				switch {
				case response.StatusCode == http.StatusOK:
					passed.Add(1)
				case response.StatusCode == http.StatusTooManyRequests && strings.Contains(string(text), `of what is used is only reserved, by calls under way), and this call may cost up to $0.00`):
				case response.StatusCode != http.StatusPaymentRequired || !strings.Contains(string(text), `of its $0.10 in total left, and this call may cost up to $0.00`):
					t.Errorf("%d: %s", response.StatusCode, text)
				}
			})
		}
		all.Wait()
		d, err := projects.Peek(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		spent := budget - price.Amount(d.Windows()[0].Remaining)
		if n := passed.Load(); n == 0 || n == 300 || spent != price.Amount(n*cost) {
			t.Errorf("%d calls have passed, and cost %v; want %v for each", n, spent, price.Amount(cost))
		}
	})
}

// Without prices of one's own, those that providers publish count, and other models are refused.
func TestPublishedPrices(t *testing.T) {
	w := llmhttptest.New(t, mockprovider.Config{}, llmhttptest.Ample)
	projects, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{DollarsPerDay: price.Dollar}})
	if err != nil {
		t.Fatal(err)
	}
	client := w.Through(llmhttp.Projects(projects, func(*http.Request) string { return "p" }))
	for model, want := range map[string]int{"gpt-4o": http.StatusOK, "unheard-of": http.StatusForbidden} {
		response, err := client.Post("https://api.openai.com/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || want != http.StatusOK && !strings.Contains(string(text), "has a limit in dollars") {
			t.Errorf("%s: %d: %s", model, response.StatusCode, text)
		}
	}
}
