package ratelimit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/llm"
)

func weight(t testing.TB, text string) llm.Weight {
	t.Helper()
	w, err := llm.ParseWeight(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// spent is the usage of a model, and the total usage of a project.
type spent struct{ tpm, input, output, tpd, project int }

// Tokens that the provider does not count are charged to the project, and not to the model. Those that it weighs are
// charged to the model by the weights of its quota, and to the project once.
func TestCommitTokens(t *testing.T) {
	sum := projectCall{Estimated: 100}
	split := projectCall{Tokens: ratelimit.Tokens{Input: 60, Output: 40}}
	free := projectCall{Tokens: ratelimit.Tokens{Input: 60, Output: 40, FreeInput: 20, FreeOutput: 10}}
	all := projectCall{Tokens: ratelimit.Tokens{Input: 60, FreeInput: 60}}
	parts := projectCall{Tokens: ratelimit.Tokens{Input: 61, Cached: 15, CacheWrite: 10, FreeInput: 20, Output: 40, Reasoning: 10}}
	weights := ratelimit.TokenWeights{CachedInput: weight(t, "0.1"), CacheWrite: weight(t, "1.25"), Output: weight(t, "5"), Reasoning: weight(t, "2")}
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

		{"weighed, a sum", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{230, 80, 150, 230, 110}},
		{"weighed, a sum, the output unknown", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: 80, Output: -1}, spent{500, 80, 500, 500, 100}},
		{"weighed, a sum, nothing known", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: -1, Output: -1}, spent{500, 500, 500, 500, 100}},
		{"weighed, a sum, nothing used", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{}, spent{}},
		{"weighed, input and output", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{230, 80, 150, 230, 110}},
		{"weighed, their parts", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 41, CacheWrite: 10, FreeInput: 5, Output: 30, Reasoning: 20},
			spent{41 + 90, 41, 90, 41 + 90, 110}}, // 24 + 4.1 + 12.5 of the prompt
		{"weighed, the output unknown", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 80, Output: -1}, spent{208, 8, 200, 208, 120}},
		{"weighed, the input unknown", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: -1, Output: 10}, spent{110, 60, 50, 110, 70}},
		{"weighed, parts that are too large", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 900, CacheWrite: 9, Output: 30, Reasoning: 900}, spent{68, 8, 60, 68, 110}},
		{"weighed, parts of the estimate", parts, spent{30 + 170, 30, 170, 200, 101}, ratelimit.Tokens{Input: -1, Output: -1}, spent{200, 30, 170, 200, 101}}, // 16 + 1.5 + 12.5
	} {
		t.Run(c.name, func(t *testing.T) {
			quota := ratelimit.ModelQuota{MaxTPM: 1000, MaxInputTPM: 500, MaxOutputTPM: 500, MaxTPD: 5000}
			if strings.HasPrefix(c.name, "weighed") {
				quota.Count = weights
			}
			everyLedger(t, quotas{"m": quota}, func(t *testing.T, rl *ratelimit.RateLimiter) {
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
			{Input: 5, Cached: 6}, {Input: 5, Cached: -1}, {Input: 5, CacheWrite: 6}, {Input: 5, Cached: 3, CacheWrite: 3}, {Input: 5, FreeInput: 3, Cached: 3},
			{Output: 5, Reasoning: 6}, {Output: 5, Reasoning: -1}, {Input: 9, Output: 5, FreeOutput: 3, Reasoning: 3}, {Cached: 1},
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

// A quota that counts output five times, as Bedrock does, is filled to the last token, and usage
// that is recorded counts the same.
func TestTokenWeightsFill(t *testing.T) {
	count := ratelimit.TokenWeights{Output: weight(t, "5")}
	everyLedger(t, quotas{"m": {MaxTPM: 1000, Count: count}, "unlimited": {Count: count}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		for range 5 {
			res, d := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 50, Output: 30})
			if res == nil {
				t.Fatalf("denied: %+v", d)
			}
			res.Commit(50, 30)
		}
		if got := rl.Stats("m").TPM; got != 1000 {
			t.Errorf("%d of 1000 used", got)
		}
		if res, _ := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 1}); res != nil {
			t.Error("one more token passes")
		}
		rl.RecordUsage("m", 7, 3)
		if got := rl.Stats("m").TPM; got != 1022 {
			t.Errorf("%d used", got)
		}
		res, _ := rl.TryAcquire("unlimited", 5)
		res.CommitTokens(ratelimit.Tokens{Input: 10, FreeInput: 4, Output: 2})
		if got := rl.Stats("unlimited").TPM; got != 16 {
			t.Errorf("%d used without a limit", got)
		}
	})
}

// A weight that is too large is refused.
func TestTokenWeightsInvalid(t *testing.T) {
	err := ratelimit.ModelQuota{Count: ratelimit.TokenWeights{Output: weight(t, "1000") + 1}}.Validate()
	if err == nil || err.Error() != "ratelimit: count of output: weight 1000.0001: it must be a number from 0 to 1000, with up to 4 digits behind the point" {
		t.Error(err)
	}
}
