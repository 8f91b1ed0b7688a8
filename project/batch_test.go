package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// A batch is charged to budgets, and settled. Tokens of a minute count it without denying it.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := project.New(&project.Limit{TokensPerMinute: 100, TokensPerDay: 10_000, DollarsPerDay: 5 * price.Dollar, MaxConcurrent: 1})
		defer limiter.Close()
		take := func(c project.Call) (*project.Reservation, project.Decision) {
			t.Helper()
			c.Project = "acme"
			r, d, err := limiter.Take(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return r, d
		}
		if _, d := take(project.Call{Estimated: 10_001, Batch: true}); d.Allowed || d.Limit != "tokens_per_day" || d.RetryAfter != project.Never {
			t.Errorf("a batch that is larger than a day's tokens: %+v", d)
		}
		if _, d := take(project.Call{Estimated: 10, Dollars: 5*price.Dollar + 1, Batch: true}); d.Allowed || d.Limit != "dollars_per_day" {
			t.Errorf("a batch that is dearer than a day's dollars: %+v", d)
		}
		batch, d := take(project.Call{Estimated: 5_000, Dollars: 3 * price.Dollar, Batch: true})
		if !d.Allowed {
			t.Fatalf("a batch: %+v", d)
		}
		for _, s := range d.Windows() {
			if want := map[string]int64{"tokens_per_minute": 0, "tokens_per_day": 5_000, "dollars_per_day": 2 * price.Dollar}[s.Window.Name]; s.Remaining != want {
				t.Errorf("%s: %d remain, want %d", s.Window.Name, s.Remaining, want)
			}
		}
		if _, d := take(project.Call{Estimated: 1}); d.Allowed || d.Limit != "tokens_per_minute" || d.RetryAfter != time.Minute {
			t.Errorf("a call within the batch's minute: %+v", d)
		}
		time.Sleep(time.Minute)
		call, d := take(project.Call{Estimated: 100})
		if !d.Allowed {
			t.Errorf("a call after the batch's minute, while the batch has no results: %+v", d)
		}
		call.Cancel()
		batch.CommitPriced(llm.Tokens{Input: 900, Output: 100}, price.Dollar)
		batch.Cancel()
		if d, err := limiter.Peek(t.Context(), "acme"); err != nil || d.Windows()[1].Remaining != 9_000 || d.Windows()[2].Remaining != 4*price.Dollar {
			t.Errorf("after the results: %+v, %v", d, err)
		}
	})
}
