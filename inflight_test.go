package ratelimit_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Of a thousand callers, as many are under way at a time as have tokens: never more than the limit, and hardly less.
func TestTokensInFlightOfManyCalls(t *testing.T) {
	const most, callers, lasts = 10_000, 1000, 2 * time.Minute
	everyLedger(t, quotas{"m": {MaxTokensInFlight: most}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		var mu sync.Mutex
		held, largest, used, since := 0, 0, 0.0, time.Now()
		hold := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			used += float64(held) * time.Since(since).Seconds()
			held, since = held+n, time.Now()
			largest = max(largest, held)
		}
		var all sync.WaitGroup
		for i := range callers {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for {
					tokens := 1 + random.IntN(200)
					res, err := rl.Acquire(ctx, "m", tokens)
					if err != nil {
						return
					}
					hold(tokens)
					time.Sleep(time.Duration(1+random.IntN(20)) * time.Second)
					hold(-tokens)
					res.Commit(tokens, 3*tokens) // what a call has used counts no more when it has ended
				}
			})
		}
		all.Wait()
		part := used / most / lasts.Seconds()
		synctest.Wait()
		if largest > most || part < .98 || rl.Stats("m").TokensInFlight != 0 {
			t.Errorf("%d of %d tokens were in flight, %.3f on average, and %d at the end", largest, most, part, rl.Stats("m").TokensInFlight)
		}
	})
}

// What a call reserves is in flight until it ends, with every token of it: what is expected of the call, or the most
// that it can use where that is reserved. A call that is larger than the limit can never pass.
func TestTokensInFlight(t *testing.T) {
	for reserve, held := range map[project.Reserve]int{project.ReserveExpected: 70, project.ReserveMost: 90} {
		q := ratelimit.ModelQuota{MaxTokensInFlight: 100, ReserveTokens: reserve, Count: ratelimit.TokenWeights{Output: 5_000_000}}
		everyLedger(t, quotas{"m": q}, func(t *testing.T, rl *ratelimit.RateLimiter) {
			c := ratelimit.Call{Model: "m", Tokens: ratelimit.Tokens{Input: 60, FreeInput: 50, Output: 10}, Most: ratelimit.Tokens{Input: 60, Output: 30}}
			res, d, err := rl.TryAcquireCall(t.Context(), c)
			if err != nil || d.Stats.TokensInFlight != held || d.Stats.MaxTokensInFlight != 100 {
				t.Fatalf("%+v, %v", d, err)
			}
			_, d, err = rl.TryAcquireCall(t.Context(), c)
			if err != nil || d.Code != ratelimit.DecisionTokensInFlightLimit || d.Limit != "max_tokens_in_flight" || d.RetryAfter != time.Second || !strings.Contains(d.Reason(), "tokens at a time") {
				t.Errorf("%+v, %v: %s", d, err, d.Reason())
			}
			larger := c
			larger.Tokens.Input = 101
			if _, d, err := rl.TryAcquireCall(t.Context(), larger); err != nil || d.RetryAfter != ratelimit.Never {
				t.Errorf("%+v, %v", d, err)
			}
			res.Cancel()
			if res, d, err = rl.TryAcquireCall(t.Context(), c); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			res.Commit(1, 1)
			if n := rl.Stats("m").TokensInFlight; n != 0 {
				t.Errorf("%d tokens are in flight", n)
			}
		})
	}
}

// Of a project, tokens in flight are a window of calls under way, of which a decision says what is left.
func TestTokensInFlightOfAProject(t *testing.T) {
	everyLedger(t, nil, func(t *testing.T, rl *ratelimit.RateLimiter) {
		limits := func() *project.Limit { return &project.Limit{MaxTokensInFlight: 100} }
		res, d := tryCall(t, rl, projectCall{Model: "m", Project: "p", Limits: limits, Estimated: 60})
		if all := d.Windows(); len(all) != 1 || all[0].Remaining != 40 || all[0].Window.Period != 0 {
			t.Fatalf("%+v", all)
		}
		_, d = tryCall(t, rl, projectCall{Model: "m", Project: "p", Limits: limits, Estimated: 41})
		if want := `project "p" has 40 of its 100 tokens at a time left, which is too little: try again in 1s`; d.Reason() != want || d.Limit != "projects.max_tokens_in_flight" {
			t.Errorf("%s: %s", d.Limit, d.Reason())
		}
		res.Commit(500, 500)
		if _, d = tryCall(t, rl, projectCall{Model: "m", Project: "p", Limits: limits, Estimated: 100}); !d.Allowed {
			t.Error(d)
		}
	})
}
