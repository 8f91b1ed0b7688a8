package ratelimit_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
)

// spent is the usage of a model, and the total usage of a project.
type spent struct{ tpm, input, output, tpd, project int }

// Tokens that the provider does not count are charged to the project, and not to the model.
func TestCommitTokens(t *testing.T) {
	sum := projectCall{Estimated: 100}
	split := projectCall{Tokens: ratelimit.Tokens{Input: 60, Output: 40}}
	free := projectCall{Tokens: ratelimit.Tokens{Input: 60, Output: 40, FreeInput: 20, FreeOutput: 10}}
	all := projectCall{Tokens: ratelimit.Tokens{Input: 60, FreeInput: 60}}
	for _, c := range []struct {
		name     string
		call     projectCall
		reserved spent
		used     ratelimit.Tokens
		want     spent
	}{
		{"a sum", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 50, FreeOutput: 10}, spent{50, 30, 20, 50, 110}},
		{"a sum, nothing free", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{110, 80, 30, 110, 110}},
		{"a sum, all free", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 80, FreeOutput: 30}, spent{0, 0, 0, 0, 110}},
		{"a sum, the output unknown", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: 80, Output: -1, FreeInput: 50}, spent{100, 30, 100, 100, 100}},
		{"a sum, the input unknown", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: -1, Output: 30, FreeOutput: 10}, spent{100, 100, 20, 100, 100}},
		{"a sum, less than the prompt alone", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: 300, Output: -1, FreeInput: 50}, spent{250, 250, 100, 250, 300}},
		{"a sum, nothing known", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{Input: -1, Output: -1}, spent{100, 100, 100, 100, 100}},
		{"a sum, nothing used", sum, spent{100, 100, 100, 100, 100}, ratelimit.Tokens{}, spent{}},

		{"parts", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 50, FreeOutput: 10}, spent{50, 30, 20, 50, 110}},
		{"parts, the output unknown", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: 80, Output: -1, FreeInput: 50}, spent{70, 30, 40, 70, 120}},
		{"parts, the input unknown", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: -1, Output: 30, FreeOutput: 10}, spent{80, 60, 20, 80, 90}},
		{"parts, nothing known", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: -1, Output: -1}, spent{100, 60, 40, 100, 100}},

		{"some free", free, spent{70, 40, 30, 70, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 10, FreeOutput: 5}, spent{95, 70, 25, 95, 110}},
		{"some free, but none was", free, spent{70, 40, 30, 70, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{110, 80, 30, 110, 110}},
		{"some free, nothing known", free, spent{70, 40, 30, 70, 100}, ratelimit.Tokens{Input: -1, Output: -1}, spent{70, 40, 30, 70, 100}},
		{"some free, the output unknown", free, spent{70, 40, 30, 70, 100}, ratelimit.Tokens{Input: 80, Output: -1, FreeInput: 50}, spent{60, 30, 30, 60, 120}},
		{"some free, the input unknown", free, spent{70, 40, 30, 70, 100}, ratelimit.Tokens{Input: -1, Output: 50}, spent{90, 40, 50, 90, 110}},
		{"all free", all, spent{0, 0, 0, 0, 60}, ratelimit.Tokens{Input: 70, FreeInput: 60}, spent{10, 10, 0, 10, 70}},

		{"negative parts", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: -7, Output: math.MinInt}, spent{100, 60, 40, 100, 100}},
		{"free parts that are negative", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: -5, FreeOutput: math.MinInt}, spent{110, 80, 30, 110, 110}},
		{"free parts that are too large", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 81, FreeOutput: math.MaxInt}, spent{0, 0, 0, 0, 110}},
		{"free parts of what is unknown", split, spent{100, 60, 40, 100, 100}, ratelimit.Tokens{Input: -1, Output: -1, FreeInput: 50, FreeOutput: 50}, spent{100, 60, 40, 100, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			everyLedger(t, quotas{"m": {MaxTPM: 1000, MaxInputTPM: 500, MaxOutputTPM: 500, MaxTPD: 5000}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
				call := c.call
				call.Model, call.Project, call.Limits = "m", "p", perMinute(0, 10_000)
				used := func() spent {
					s := rl.Stats("m")
					return spent{s.TPM, s.InputTPM, s.OutputTPM, s.TPD, int(10_000 - remaining(t, rl, "p", call.Limits)[0])}
				}
				res, _ := tryCall(t, rl, call)
				if got := used(); got != c.reserved {
					t.Errorf("reserved %+v; want %+v", got, c.reserved)
				}
				time.Sleep(time.Second)
				res.CommitTokens(c.used)
				if got := used(); got != c.want {
					t.Errorf("%+v has used %+v; want %+v", c.used, got, c.want)
				}
				res.CommitTokens(ratelimit.Tokens{Input: 400, Output: 400})
				res.Commit(400, 400)
				res.Cancel()
				if got := used(); got != c.want {
					t.Errorf("settled again: %+v; want %+v", got, c.want)
				}
				res, _ = tryCall(t, rl, call)
				res.Cancel()
				if got := used(); got != c.want {
					t.Errorf("cancelled: %+v; want %+v", got, c.want)
				}
			})
		})
	}
}

// A model without limits is charged the tokens that count, and the project all tokens.
func TestCommitTokensOfFreeModels(t *testing.T) {
	for _, model := range []string{"free", "unknown", ""} {
		everyLedger(t, quotas{"free": {}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
			call := projectCall{Model: model, Project: "p", Limits: perMinute(0, 1000), Tokens: ratelimit.Tokens{Input: 60, Output: 40, FreeInput: 20}}
			res, d := tryCall(t, rl, call)
			if !d.Allowed {
				t.Fatalf("%+v", d)
			}
			res.CommitTokens(ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 50, FreeOutput: 10})
			tpm, rpm := 50, 1
			if model == "" {
				tpm, rpm = 0, 0
			}
			wantLeft(t, rl, call, rpm, tpm, 890)
			call.Project, call.Limits = "", nil
			if model == "" {
				return
			}
			res, _ = tryCall(t, rl, call)
			res.CommitTokens(ratelimit.Tokens{Input: 5, Output: 5, FreeOutput: 5})
			if s := rl.Stats(model); s.TPM != 55 || s.RPM != 2 {
				t.Errorf("%q: %+v", model, s)
			}
		})
	}
}

// A model admits an estimate if the tokens of it that count fit, and a project if all of them
// do.
func TestFreeEstimates(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxTPM: 100, MaxInputTPM: 50}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		large := ratelimit.Tokens{Input: 550, Output: 50, FreeInput: 500}
		res, d := rl.TryAcquireTokens("m", large)
		if !d.Allowed || d.Stats.TPM != 100 || d.Stats.InputTPM != 50 {
			t.Errorf("%+v", d)
		}
		res.Cancel()
		for limit, code := range map[int64]ratelimit.DecisionCode{599: ratelimit.DecisionProjectLimit, 600: ok} {
			_, d := tryCall(t, rl, projectCall{Model: "m", Project: fmt.Sprint(limit), Limits: perMinute(0, limit), Tokens: large})
			if d.Code != code || code != ok && d.RetryAfter != ratelimit.Never {
				t.Errorf("a project with %d tokens: %+v", limit, d)
			}
		}
		rl.Reset("m")
		large.FreeInput--
		if _, d := rl.TryAcquireTokens("m", large); d.RetryAfter != ratelimit.Never {
			t.Errorf("one more counts: %+v", d)
		}
		large.FreeInput++
		if res, err := rl.AcquireTokens(t.Context(), "m", large); err != nil || rl.Stats("m").TPM != 100 {
			t.Errorf("%v, %v, %+v", res, err, rl.Stats("m"))
		}
	})
}

// Invalid numbers of tokens are refused, and take nothing.
func TestInvalidFreeEstimates(t *testing.T) {
	observed(t, quotas{"m": {MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter, seen *diary) {
		for _, tokens := range []ratelimit.Tokens{
			{Input: 5, FreeInput: 6}, {Output: 5, FreeOutput: 6}, {Input: 5, FreeInput: -1}, {Output: 5, FreeOutput: -1},
			{FreeInput: 1}, {Input: 5, FreeOutput: 1}, {Input: math.MaxInt, FreeInput: math.MaxInt}, {Input: -1, FreeInput: -1}, {Input: 5, FreeInput: math.MinInt},
		} {
			seen.Since()
			res, d := rl.TryAcquireTokens("m", tokens)
			if res != nil || d.Code != ratelimit.DecisionInvalidTokens || d.RetryAfter != ratelimit.Never {
				t.Errorf("%+v: %v, %+v", tokens, res, d)
			}
			if list := seen.Since(); len(list) != 1 || list[0].Kind != event.Refused {
				t.Errorf("%+v: %+v", tokens, list)
			}
			call := projectCall{Model: "m", Tokens: tokens}
			res, _, tried := tryAcquireCall(rl, t.Context(), call)
			again, _, waited := acquireCall(rl, t.Context(), call)
			third, err := rl.AcquireTokens(t.Context(), "m", tokens)
			if res != nil || again != nil || third != nil || tried == nil || waited == nil || err == nil {
				t.Errorf("%+v: %v, %v, %v", tokens, tried, waited, err)
			}
			if errors.Is(tried, ratelimit.ErrNever) {
				t.Errorf("%+v: %v", tokens, tried)
			}
		}
		if s := rl.Stats("m"); s.TPM != 0 || s.RPM != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// An observer gets all tokens that a call has used, and how many of them count. The estimate
// in the event has only the reserved tokens that count.
func TestObserverOfFreeTokens(t *testing.T) {
	observed(t, quotas{"m": {MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		res, _ := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 60, Output: 40, FreeInput: 30})
		d.want(t, "admitted", eventOf(event.Admitted, func(e *event.Event) { e.Estimated = 70 }), nil)
		res.CommitTokens(ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 99, FreeOutput: -1})
		d.want(t, "settled", eventOf(event.Settled, func(e *event.Event) {
			e.Estimated, e.Used = 70, ratelimit.Tokens{Input: 80, Output: 30, FreeInput: 80}
		}), nil)
		res, _ = rl.TryAcquire("m", 10)
		d.Since()
		res.CommitTokens(ratelimit.Tokens{Input: -5, Output: -1, FreeInput: 5})
		d.want(t, "nothing known", eventOf(event.Settled, func(e *event.Event) {
			e.Estimated, e.Used = 10, ratelimit.Tokens{Input: -1, Output: -1}
		}), nil)
	})
}
