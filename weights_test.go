package ratelimit_test

import (
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
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

// A model is charged by the weights of its quota, and a project for every token once.
func TestTokenWeights(t *testing.T) {
	count := ratelimit.TokenWeights{CachedInput: weight(t, "0.1"), CacheWrite: weight(t, "1.25"), Output: weight(t, "5"), Reasoning: weight(t, "2")}
	sum := projectCall{Estimated: 100}
	split := projectCall{Tokens: ratelimit.Tokens{Input: 60, Output: 40}}
	parts := projectCall{Tokens: ratelimit.Tokens{Input: 61, Cached: 15, CacheWrite: 10, FreeInput: 20, Output: 40, Reasoning: 10}}
	for _, c := range []struct {
		name     string
		call     projectCall
		reserved spent
		used     ratelimit.Tokens
		want     spent
	}{
		{"a sum", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{230, 80, 150, 230, 110}},
		{"a sum, the output unknown", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: 80, Output: -1}, spent{500, 80, 500, 500, 100}},
		{"a sum, nothing known", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{Input: -1, Output: -1}, spent{500, 500, 500, 500, 100}},
		{"a sum, nothing used", sum, spent{500, 500, 500, 500, 100}, ratelimit.Tokens{}, spent{}},
		{"input and output", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Output: 30}, spent{230, 80, 150, 230, 110}},
		{"their parts", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 41, CacheWrite: 10, FreeInput: 5, Output: 30, Reasoning: 20},
			spent{41 + 90, 41, 90, 41 + 90, 110}}, // 24 + 4.1 + 12.5 of the prompt
		{"the output unknown", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 80, Output: -1}, spent{208, 8, 200, 208, 120}},
		{"the input unknown", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: -1, Output: 10}, spent{110, 60, 50, 110, 70}},
		{"parts that are too large", split, spent{260, 60, 200, 260, 100}, ratelimit.Tokens{Input: 80, Cached: 900, CacheWrite: 9, Output: 30, Reasoning: 900}, spent{68, 8, 60, 68, 110}},
		{"parts of the estimate", parts, spent{30 + 170, 30, 170, 200, 101}, ratelimit.Tokens{Input: -1, Output: -1}, spent{200, 30, 170, 200, 101}}, // 16 + 1.5 + 12.5
	} {
		t.Run(c.name, func(t *testing.T) {
			everyLedger(t, quotas{"m": {MaxTPM: 1000, MaxInputTPM: 500, MaxOutputTPM: 500, MaxTPD: 5000, Count: count}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
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
				res, _ = tryCall(t, rl, call)
				res.Cancel()
				if got := used(); got != c.want {
					t.Errorf("cancelled: %+v; want %+v", got, c.want)
				}
			})
		})
	}
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

// Parts that make no sense are refused, and charge nothing.
func TestTokenPartsInvalid(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxTPM: 1000}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		for _, bad := range []ratelimit.Tokens{
			{Input: 5, Cached: 6}, {Input: 5, Cached: -1}, {Input: 5, CacheWrite: 6}, {Input: 5, Cached: 3, CacheWrite: 3}, {Input: 5, FreeInput: 3, Cached: 3},
			{Output: 5, Reasoning: 6}, {Output: 5, Reasoning: -1}, {Input: 9, Output: 5, FreeOutput: 3, Reasoning: 3}, {Cached: 1},
		} {
			if res, d := rl.TryAcquireTokens("m", bad); res != nil || d.Code != ratelimit.DecisionInvalidTokens {
				t.Errorf("%+v: %+v", bad, d)
			}
		}
		if got := rl.Stats("m"); got.TPM != 0 || got.RPM != 0 {
			t.Errorf("%+v used", got)
		}
	})
}
