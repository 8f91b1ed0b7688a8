package ratelimit

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

func TestDecisionCodes(t *testing.T) {
	for got, want := range map[DecisionCode]string{
		DecisionAllowed: "ok", DecisionUnknownModel: "unknown_model", DecisionUnlimited: "unlimited", DecisionInvalidTokens: "invalid_tokens",
		DecisionRPDLimit: "rpd_exceeded", DecisionRPMLimit: "rpm_exceeded", DecisionTPMLimit: "tpm_exceeded",
	} {
		if string(got) != want {
			t.Errorf("the code %q; want %q", got, want)
		}
	}
}

// TestNever: a call that is larger than a limit is denied for ever, by that limit, whatever
// else is used up.
func TestNever(t *testing.T) {
	for _, tt := range []struct {
		name  string
		quota ModelQuota
		ask   Tokens
		code  DecisionCode
	}{
		{"TPM", ModelQuota{MaxTPM: 100}, Tokens{Input: 101}, DecisionTPMLimit},
		{"TPM, of both", ModelQuota{MaxTPM: 100, MaxInputTPM: 90, MaxOutputTPM: 90}, Tokens{Input: 51, Output: 50}, DecisionTPMLimit},
		{"input TPM", ModelQuota{MaxTPM: 1000, MaxInputTPM: 100}, Tokens{Input: 101}, DecisionInputTPMLimit},
		{"output TPM", ModelQuota{MaxTPM: 1000, MaxOutputTPM: 100}, Tokens{Output: 101}, DecisionOutputTPMLimit},
		{"TPD", ModelQuota{MaxTPD: 100}, Tokens{Input: 60, Output: 41}, DecisionTPDLimit},
		{"TPD by a calendar", ModelQuota{MaxTPD: 100, DayResetsAt: "00:00 UTC"}, Tokens{Input: 60, Output: 41}, DecisionTPDLimit},
		{"TPD below TPM", ModelQuota{MaxTPD: 100, MaxTPM: 200}, Tokens{Input: 60, Output: 41}, DecisionTPDLimit},
		{"the largest", ModelQuota{MaxTPM: state.MaxQuota}, Tokens{Input: engine.MaxTokens, Output: 1}, DecisionTPMLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, used := range []bool{false, true} {
					quota := tt.quota
					quota.MaxRPD, quota.MaxRPM, quota.MaxConcurrent = 1, 1, 1
					rl := memLimiter(t, quota)
					if used {
						memTakeSplit(t, rl, Tokens{Input: 1, Output: 1})
					}
					before := rl.Stats(memModel)
					res, d := rl.TryAcquireTokens(memModel, tt.ask)
					if res != nil || d.Allowed || d.Code != tt.code || d.RetryAfter != Never {
						t.Errorf("used %t: %+v; want never, by %s", used, d, tt.code)
					}
					if got := rl.Stats(memModel); got != before || d.Stats != before {
						t.Errorf("stats %+v and %+v; want %+v", d.Stats, got, before)
					}
				}
			})
		})
	}
	t.Run("exactly the quota", func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPM: 100, MaxInputTPM: 60, MaxOutputTPM: 40, MaxTPD: 100})
		memTakeSplit(t, rl, Tokens{Input: 60, Output: 40})
	})
	t.Run("exactly the largest", func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPM: state.MaxQuota})
		memTake(t, rl, engine.MaxTokens)
		if s := rl.Stats(memModel); s.TPM != state.MaxQuota {
			t.Errorf("%+v", s)
		}
	})
}

// TestInvalidTokens: invalid calls are refused before a limit is asked.
func TestInvalidTokens(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxRPM: 1})
	if err := rl.SetQuota("free", ModelQuota{}); err != nil {
		t.Fatal(err)
	}
	before := rl.AllStats()
	for _, model := range []string{memModel, "free", "unknown", ""} {
		for _, n := range []int{-1, math.MinInt, engine.MaxTokens + 1, math.MaxInt} {
			check := func(door string, d Decision) {
				t.Helper()
				if d.Allowed || d.Code != DecisionInvalidTokens || d.RetryAfter != Never || d.Reason() == "" {
					t.Errorf("%s(%q, %d) = %+v; want invalid tokens", door, model, n, d)
				}
			}
			check("Decide", rl.Decide(model, n))
			res, d := rl.TryAcquire(model, n)
			check("TryAcquire", d)
			split, d := rl.TryAcquireTokens(model, Tokens{Output: n})
			check("TryAcquireTokens", d)
			also, d := rl.TryAcquireTokens(model, Tokens{Input: n})
			check("TryAcquireTokens", d)
			if res != nil || split != nil || also != nil || rl.CanSend(model, n) {
				t.Errorf("%q, %d passes", model, n)
			}
			taken, err := rl.Acquire(t.Context(), model, n)
			memRefused(t, err, "tokens")
			takenSplit, err := rl.AcquireTokens(t.Context(), model, Tokens{Input: n, Output: 1})
			memRefused(t, err, "tokens")
			memRefused(t, rl.WaitForCapacity(t.Context(), model, n), "tokens")
			if taken != nil || takenSplit != nil {
				t.Errorf("%q, %d passes", model, n)
			}
		}
	}
	if after := rl.AllStats(); len(after) != len(before) || after[memModel] != before[memModel] {
		t.Errorf("stats %+v; want %+v", after, before)
	}
}

// TestCalendarDays crosses the days on which the clocks in Los Angeles change.
func TestCalendarDays(t *testing.T) {
	const pacific = "America/Los_Angeles"
	zone, err := time.LoadLocation(pacific)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name       string
		resets     string
		start, end time.Time // the day
	}{
		{"winter", "00:00 ", time.Date(2000, 1, 5, 0, 0, 0, 0, zone), time.Date(2000, 1, 6, 0, 0, 0, 0, zone)},
		{"spring has 23 hours", "00:00 ", time.Date(2000, 4, 2, 0, 0, 0, 0, zone), time.Date(2000, 4, 2, 23, 0, 0, 0, zone).Add(time.Hour)},
		{"summer", "00:00 ", time.Date(2000, 7, 5, 0, 0, 0, 0, zone), time.Date(2000, 7, 6, 0, 0, 0, 0, zone)},
		{"autumn has 25 hours", "00:00 ", time.Date(2000, 10, 29, 0, 0, 0, 0, zone), time.Date(2000, 10, 29, 23, 0, 0, 0, zone).Add(time.Hour)},
		{"not at midnight", "17:30 ", time.Date(2000, 7, 5, 17, 30, 0, 0, zone), time.Date(2000, 7, 6, 17, 30, 0, 0, zone)},
		{"a time that is skipped", "02:30 ", time.Date(2000, 4, 1, 2, 30, 0, 0, zone), time.Date(2000, 4, 2, 10, 0, 0, 0, time.UTC)},
		{"the day after it", "02:30 ", time.Date(2000, 4, 2, 10, 0, 0, 0, time.UTC), time.Date(2000, 4, 3, 2, 30, 0, 0, zone)},
		{"a time that comes twice", "01:30 ", time.Date(2000, 10, 28, 1, 30, 0, 0, zone), time.Date(2000, 10, 29, 8, 30, 0, 0, time.UTC)},
		{"the day after it, too", "01:30 ", time.Date(2000, 10, 29, 8, 30, 0, 0, time.UTC), time.Date(2000, 10, 30, 1, 30, 0, 0, zone)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl := memLimiter(t, ModelQuota{MaxRPD: 2, MaxTPD: 20, DayResetsAt: tt.resets + pacific})
				time.Sleep(time.Until(tt.start) - 1)
				memTake(t, rl, 1)
				memTake(t, rl, 1)
				memPassesIn(t, rl, 1, DecisionRPDLimit, 1)
				time.Sleep(time.Hour)
				memTake(t, rl, 1)
				time.Sleep(time.Hour)
				memTake(t, rl, 1)
				want := ModelStats{RPM: 1, TPM: 1, RPD: 2, MaxRPD: 2, TPD: 2, MaxTPD: 20, DayStart: tt.start.UTC()}
				if s := rl.Stats(memModel); s != want {
					t.Errorf("stats %+v; want %+v", s, want)
				}
				memPassesIn(t, rl, 1, DecisionRPDLimit, time.Until(tt.end))
				memTake(t, rl, 1)
				if s := rl.Stats(memModel); s.DayStart != tt.end.UTC() || s.RPD != 1 {
					t.Errorf("on the next day: %+v; want one since %v", s, tt.end.UTC())
				}
			})
		})
	}
}

// TestReasons: the reason of a denial names the limit, for people.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 1, MaxTPM: 1000})
		memTake(t, rl, 7)
		for _, tt := range []struct {
			tokens int
			says   []string
		}{
			{1, []string{"1 of 1", "requests a minute", "1m0s"}},
			{1001, []string{"1000", "tokens a minute", "never"}},
			{-4, []string{"-4"}},
		} {
			reason := rl.Decide(memModel, tt.tokens).Reason()
			for _, says := range tt.says {
				if !strings.Contains(reason, says) {
					t.Errorf("%d tokens: %q; want it to say %q", tt.tokens, reason, says)
				}
			}
		}
		if reason := rl.Decide("unknown", 1).Reason(); reason == "" {
			t.Error("no reason for an unknown model")
		}
	})
}

// TestCanSend: CanSend is Decide's Allowed.
func TestCanSend(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxRPM: 1})
	first, second := rl.CanSend(memModel, 5), rl.CanSend(memModel, 5)
	if !first || !second {
		t.Error("CanSend takes something")
	}
	rl.RecordUsage(memModel, 1, 1)
	if rl.CanSend(memModel, 5) {
		t.Error("a second request can be sent")
	}
}
