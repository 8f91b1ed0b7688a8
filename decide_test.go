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

// deciding is a history of one model, and the decision that must follow.
type deciding struct {
	name    string
	quota   ModelQuota
	history []decidingStep
	ask     int
	code    DecisionCode
	retry   time.Duration
}

// decidingStep lets time pass, and then records usage, whatever the quota is.
type decidingStep struct {
	after         time.Duration
	input, output int
}

func repeated(n int, step decidingStep) []decidingStep {
	steps := make([]decidingStep, n)
	for i := range steps {
		steps[i] = step
	}
	return steps
}

// TestRetryAfterIsExact asks a nanosecond before RetryAfter is over, and when it is over. A
// bubble's clock begins at midnight UTC, which is 16:00 in Los Angeles.
func TestRetryAfterIsExact(t *testing.T) {
	const pacific = "00:00 America/Los_Angeles"
	for _, tt := range []deciding{
		{"RPM", ModelQuota{MaxRPM: 2}, []decidingStep{{0, 5, 5}, {10 * time.Second, 5, 5}}, 1, DecisionRPMLimit, 50 * time.Second},
		{"RPM of one instant", ModelQuota{MaxRPM: 3}, repeated(3, decidingStep{}), 0, DecisionRPMLimit, time.Minute},
		{"RPM of one", ModelQuota{MaxRPM: 1}, []decidingStep{{0, 0, 0}, {59*time.Second + 999_999_999, 0, 0}}, 0, DecisionRPMLimit, time.Minute},
		{"RPM that was gone over", ModelQuota{MaxRPM: 2}, repeated(5, decidingStep{after: time.Second}), 0, DecisionRPMLimit, 59 * time.Second},
		{"RPM a nanosecond apart", ModelQuota{MaxRPM: 2}, []decidingStep{{}, {after: 1}}, 0, DecisionRPMLimit, time.Minute - 1},

		{"TPM, the first is enough", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 60, 0}, {5 * time.Second, 0, 40}}, 60, DecisionTPMLimit, 55 * time.Second},
		{"TPM, the first is not", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 60, 0}, {5 * time.Second, 0, 40}}, 61, DecisionTPMLimit, time.Minute},
		{"TPM, all", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 1, 0}}, 100, DecisionTPMLimit, time.Minute},
		{"TPM, a debt", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 20, 0}, {time.Second, 300, 300}, {time.Second, 20, 0}}, 1, DecisionTPMLimit, 59 * time.Second},
		{"TPM, a debt behind what is enough", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 90, 20}, {time.Second, 50, 0}}, 50, DecisionTPMLimit, 59 * time.Second},
		{"TPM, requests of nothing between", ModelQuota{MaxTPM: 100}, []decidingStep{{0, 0, 0}, {time.Second, 100, 0}, {time.Second, 0, 0}}, 1, DecisionTPMLimit, 59 * time.Second},

		{"RPD", ModelQuota{MaxRPD: 2}, []decidingStep{{0, 5, 5}, {time.Hour, 5, 5}}, 1, DecisionRPDLimit, 23 * time.Hour},
		{"RPD, a day later", ModelQuota{MaxRPD: 1}, []decidingStep{{0, 5, 5}, {24 * time.Hour, 5, 5}}, 1, DecisionRPDLimit, 24 * time.Hour},
		{"RPD, a nanosecond before the day's end", ModelQuota{MaxRPD: 2}, []decidingStep{{}, {after: 24*time.Hour - 1}}, 1, DecisionRPDLimit, 1},
		{"RPD, anchored at the first request", ModelQuota{MaxRPD: 1}, []decidingStep{{after: 7 * time.Hour}}, 1, DecisionRPDLimit, 24 * time.Hour},
		{"RPD, gone over", ModelQuota{MaxRPD: 1}, repeated(9, decidingStep{after: time.Hour}), 1, DecisionRPDLimit, 16 * time.Hour},
		{"RPD by a calendar", ModelQuota{MaxRPD: 1, DayResetsAt: pacific}, []decidingStep{{}}, 1, DecisionRPDLimit, 8 * time.Hour},
		{"RPD by a calendar, later", ModelQuota{MaxRPD: 1, DayResetsAt: pacific}, []decidingStep{{}, {after: 8 * time.Hour}, {after: time.Hour}}, 1, DecisionRPDLimit, 23 * time.Hour},
		{"RPD by a calendar, with minutes", ModelQuota{MaxRPD: 1, DayResetsAt: "05:45 Asia/Kathmandu"}, []decidingStep{{after: time.Minute}}, 1, DecisionRPDLimit, 24*time.Hour - time.Minute},

		{"input TPM", ModelQuota{MaxInputTPM: 100, MaxOutputTPM: 1000}, []decidingStep{{0, 60, 50}, {time.Second, 40, 0}}, 60, DecisionInputTPMLimit, 59 * time.Second},
		{"output TPM", ModelQuota{MaxInputTPM: 1000, MaxOutputTPM: 100}, []decidingStep{{0, 50, 60}, {time.Second, 0, 40}}, 61, DecisionOutputTPMLimit, time.Minute},
		{"TPD", ModelQuota{MaxTPD: 100}, []decidingStep{{0, 50, 0}, {time.Hour, 0, 50}}, 1, DecisionTPDLimit, 23 * time.Hour},
		{"TPD, what is left is too little", ModelQuota{MaxTPD: 100}, []decidingStep{{time.Hour, 50, 0}, {time.Hour, 0, 40}}, 11, DecisionTPDLimit, 23 * time.Hour},
		{"TPD, anchored at the first tokens", ModelQuota{MaxTPD: 100}, []decidingStep{{}, {time.Hour, 0, 100}}, 11, DecisionTPDLimit, 24 * time.Hour},
		{"TPD by a calendar", ModelQuota{MaxTPD: 100, DayResetsAt: pacific}, []decidingStep{{time.Hour, 100, 0}}, 1, DecisionTPDLimit, 7 * time.Hour},

		{"RPD before RPM", ModelQuota{MaxRPD: 1, MaxRPM: 1}, []decidingStep{{}}, 1, DecisionRPDLimit, 24 * time.Hour},
		{"RPM before TPM", ModelQuota{MaxRPM: 1, MaxTPM: 10}, []decidingStep{{0, 10, 0}}, 1, DecisionRPMLimit, time.Minute},
		{"RPM before TPM, which takes longer", ModelQuota{MaxRPM: 2, MaxTPM: 10}, []decidingStep{{0, 0, 0}, {time.Second, 10, 0}}, 1, DecisionRPMLimit, time.Minute},
		{"RPD before RPM, which takes longer", ModelQuota{MaxRPD: 2, MaxRPM: 1}, []decidingStep{{}, {after: 24*time.Hour - time.Second}}, 1, DecisionRPDLimit, time.Minute},
		{"TPM before input before output before TPD", ModelQuota{MaxTPM: 10, MaxInputTPM: 5, MaxOutputTPM: 5, MaxTPD: 10}, []decidingStep{{0, 5, 5}}, 1, DecisionTPMLimit, 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl := memLimiter(t, tt.quota)
				for _, step := range tt.history {
					time.Sleep(step.after)
					rl.RecordUsage(memModel, step.input, step.output)
				}
				if d := memDenied(t, rl, tt.ask); d.Code != tt.code || d.RetryAfter != tt.retry {
					t.Fatalf("%+v; want %s, %v", d, tt.code, tt.retry)
				}
				time.Sleep(tt.retry - 1)
				if d := memDenied(t, rl, tt.ask); d.RetryAfter != 1 {
					t.Fatalf("1ns early: %+v", d)
				}
				time.Sleep(time.Nanosecond)
				if d := rl.Decide(memModel, tt.ask); !d.Allowed || d.Code != DecisionAllowed || d.RetryAfter != 0 {
					t.Fatalf("in time: %+v; want it allowed", d)
				}
				memTake(t, rl, tt.ask)
			})
		})
	}
}

// TestCheckOrder uses up all limits, and lifts one limit after the other. The code is that of the first in the order, and
// Limit is the one that denies longest.
func TestCheckOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := ModelQuota{MaxRPD: 1, MaxRPM: 1, MaxTPM: 10, MaxInputTPM: 10, MaxOutputTPM: 10, MaxTPD: 10, MaxConcurrent: 1}
		rl := memLimiter(t, quota)
		memTake(t, rl, 10)
		for _, tt := range []struct {
			code  DecisionCode
			limit *int
			retry time.Duration
			name  string
		}{
			{DecisionRPDLimit, &quota.MaxRPD, 24 * time.Hour, "max_rpd"},
			{DecisionRPMLimit, &quota.MaxRPM, 24 * time.Hour, "max_tpd"}, // the day's tokens still deny
			{DecisionTPMLimit, &quota.MaxTPM, 24 * time.Hour, "max_tpd"},
			{DecisionInputTPMLimit, &quota.MaxInputTPM, 24 * time.Hour, "max_tpd"},
			{DecisionOutputTPMLimit, &quota.MaxOutputTPM, 24 * time.Hour, "max_tpd"},
			{DecisionTPDLimit, &quota.MaxTPD, 24 * time.Hour, "max_tpd"},
			{DecisionConcurrencyLimit, &quota.MaxConcurrent, 0, "max_concurrent"},
		} {
			d := memDenied(t, rl, 1)
			if d.Code != tt.code || tt.retry > 0 && d.RetryAfter != tt.retry || d.Limit != tt.name {
				t.Errorf("%+v by %s; want %s, %v by %s", d, d.Limit, tt.code, tt.retry, tt.name)
			}
			*tt.limit = 0
			if err := rl.SetQuota(memModel, quota); err != nil {
				t.Fatal(err)
			}
		}
		if d := rl.Decide(memModel, 1); d.Code != DecisionUnlimited {
			t.Errorf("%+v; want it unlimited", d)
		}
	})
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

// TestUnknownAndUnlimitedModels: calls of these models pass, and their usage is counted.
func TestUnknownAndUnlimitedModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memConfigured(t, Config{Quotas: map[string]ModelQuota{"free": {}, "freeday": {DayResetsAt: "00:00 UTC"}}})
		for model, code := range map[string]DecisionCode{"unknown": DecisionUnknownModel, "free": DecisionUnlimited, "freeday": DecisionUnlimited} {
			for range 1000 {
				d := rl.Decide(model, engine.MaxTokens)
				res, taken := rl.TryAcquire(model, engine.MaxTokens)
				if !d.Allowed || d.Code != code || d.RetryAfter != 0 || taken != d || res == nil || !rl.CanSend(model, 5) {
					t.Fatalf("%s: %+v and %+v; want %s", model, d, taken, code)
				}
				if _, err := rl.Acquire(t.Context(), model, engine.MaxTokens); err != nil {
					t.Fatal(err)
				}
				if err := rl.WaitForCapacity(t.Context(), model, engine.MaxTokens); err != nil {
					t.Fatal(err)
				}
				res.Cancel()
				res.Commit(1, 1)
			}
			if s := rl.Stats(model); s != (ModelStats{}) {
				t.Errorf("%s: %+v; want nothing used", model, s)
			}
			if len(rl.State()) > 0 || len(rl.withoutQuota) > 0 {
				t.Errorf("%s has left %v", model, rl.State())
			}
			res, _ := rl.TryAcquire(model, 50)
			time.Sleep(time.Second)
			used := ModelStats{RPM: 1, TPM: 12, RPD: 1, DayStart: time.Now().UTC()}
			if model == "freeday" {
				used.DayStart = time.Now().UTC().Truncate(24 * time.Hour)
			}
			res.Commit(10, 2)
			res.Commit(10, 2)
			if s := rl.Stats(model); s != used {
				t.Errorf("%s: %+v; want %+v", model, s, used)
			}
			if d := rl.Decide(model, 5); d.Stats != used {
				t.Errorf("%s: the decision says %+v; Stats %+v", model, d.Stats, used)
			}
			rl.Reset(model)
		}
	})
}

// TestDecisionStats: the stats of a decision include what the call has taken, if it was
// admitted.
func TestDecisionStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := ModelQuota{MaxRPM: 10, MaxTPM: 100, MaxRPD: 20, MaxInputTPM: 90, MaxOutputTPM: 80, MaxTPD: 200, MaxConcurrent: 5}
		rl := memLimiter(t, quota)
		want := ModelStats{MaxRPM: 10, MaxTPM: 100, MaxRPD: 20, MaxInputTPM: 90, MaxOutputTPM: 80, MaxTPD: 200, MaxConcurrent: 5}
		check := func(d Decision) {
			t.Helper()
			if d.Stats != want {
				t.Fatalf("the decision says %+v; want %+v", d.Stats, want)
			}
			if got := rl.Stats(memModel); got != want {
				t.Fatalf("stats %+v; want %+v", got, want)
			}
			if got := rl.Decide(memModel, 1); got.Stats != want {
				t.Fatalf("Decide says %+v; want %+v", got.Stats, want)
			}
		}
		check(rl.Decide(memModel, 30))
		time.Sleep(time.Second)
		res, d := rl.TryAcquireTokens(memModel, Tokens{Input: 30, Output: 10})
		want.DayStart, want.RPM, want.RPD, want.TPM, want.TPD = time.Now().UTC(), 1, 1, 40, 40
		want.InputTPM, want.OutputTPM, want.Concurrent = 30, 10, 1
		check(d)
		_, d = rl.TryAcquireTokens(memModel, Tokens{Input: 61, Output: 0})
		check(d)
		time.Sleep(30 * time.Second)
		_, d = rl.TryAcquire(memModel, 20)
		want.RPM, want.RPD, want.TPM, want.TPD, want.InputTPM, want.OutputTPM, want.Concurrent = 2, 2, 60, 60, 50, 30, 2
		check(d)
		res.Commit(5, 1)
		want.TPM, want.TPD, want.InputTPM, want.OutputTPM, want.Concurrent = 26, 26, 25, 21, 1
		check(rl.Decide(memModel, 1))
		time.Sleep(30 * time.Second)
		want.RPM, want.TPM, want.InputTPM, want.OutputTPM = 1, 20, 20, 20
		check(rl.Decide(memModel, 1))
		time.Sleep(24*time.Hour - time.Minute)
		want = ModelStats{MaxRPM: 10, MaxTPM: 100, MaxRPD: 20, MaxInputTPM: 90, MaxOutputTPM: 80, MaxTPD: 200, MaxConcurrent: 5}
		check(rl.Decide(memModel, 1))
	})
}

// TestDayIsAnchored: a day is the 24 hours from its first request on. The next day begins with
// the next request, not where the last day ended.
func TestDayIsAnchored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPD: 3, MaxTPD: 3})
		time.Sleep(5*time.Hour + 17)
		for day := range 3 {
			start := time.Now().UTC()
			memTake(t, rl, 1)
			time.Sleep(20 * time.Hour)
			memTake(t, rl, 1)
			memTake(t, rl, 1)
			if s := rl.Stats(memModel); s.DayStart != start || s.RPD != 3 || s.TPD != 3 {
				t.Fatalf("day %d: %+v; want 3 since %v", day, s, start)
			}
			memPassesIn(t, rl, 1, DecisionRPDLimit, 4*time.Hour)
			if s := rl.Stats(memModel); s.RPD != 0 || !s.DayStart.IsZero() {
				t.Fatalf("day %d has ended: %+v", day, s)
			}
			time.Sleep(time.Duration(day) * 13 * time.Hour)
		}
	})
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

// TestInputAndOutputApart: input and output have limits of their own, and their sum has
// another.
func TestInputAndOutputApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPM: 150, MaxInputTPM: 100, MaxOutputTPM: 80})
		memTakeSplit(t, rl, Tokens{Input: 100, Output: 0})
		if _, d := rl.TryAcquireTokens(memModel, Tokens{Input: 1, Output: 0}); d.Code != DecisionInputTPMLimit || d.RetryAfter != time.Minute {
			t.Errorf("%+v; want the input's limit", d)
		}
		time.Sleep(time.Second)
		memTakeSplit(t, rl, Tokens{Input: 0, Output: 50})
		if _, d := rl.TryAcquireTokens(memModel, Tokens{Input: 0, Output: 1}); d.Code != DecisionTPMLimit || d.RetryAfter != 59*time.Second {
			t.Errorf("%+v; want the sum's limit", d)
		}
		time.Sleep(59 * time.Second)
		memTakeSplit(t, rl, Tokens{Input: 0, Output: 30})
		if _, d := rl.TryAcquireTokens(memModel, Tokens{Input: 5, Output: 1}); d.Code != DecisionOutputTPMLimit || d.RetryAfter != time.Second {
			t.Errorf("%+v; want the output's limit", d)
		}
		memTakeSplit(t, rl, Tokens{Input: 70, Output: 0})
		if s := rl.Stats(memModel); s.TPM != 150 || s.InputTPM != 70 || s.OutputTPM != 80 {
			t.Errorf("%+v", s)
		}
	})
}

// TestUnsplitEstimates: if only the sum is estimated, each part is reserved as all of the sum,
// up to its limit.
func TestUnsplitEstimates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPM: 1000, MaxInputTPM: 100, MaxOutputTPM: 50})
		res := memTake(t, rl, 40)
		if s := rl.Stats(memModel); s.TPM != 40 || s.InputTPM != 40 || s.OutputTPM != 40 {
			t.Errorf("reserved %+v; want 40 of each", s)
		}
		if d := memDenied(t, rl, 11); d.Code != DecisionOutputTPMLimit {
			t.Errorf("%+v; want the output's limit", d)
		}
		res.Commit(35, 5)
		if s := rl.Stats(memModel); s.TPM != 40 || s.InputTPM != 35 || s.OutputTPM != 5 {
			t.Errorf("used %+v; want 40, 35 and 5", s)
		}
		time.Sleep(time.Minute)
		res = memTake(t, rl, 500) // 400 of them are neither input nor output
		if s := rl.Stats(memModel); s.TPM != 500 || s.InputTPM != 100 || s.OutputTPM != 50 {
			t.Errorf("reserved %+v; want 500, 100 and 50", s)
		}
		res.Cancel()
		if s := rl.Stats(memModel); s.TPM != 0 || s.InputTPM != 0 || s.OutputTPM != 0 || s.RPM != 0 {
			t.Errorf("cancelled: %+v", s)
		}
	})
}

// TestConcurrency: a call has its slot until Commit or Cancel, or for ten minutes.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxConcurrent: 2})
		first, second := memTake(t, rl, 5), memTake(t, rl, 5)
		d := memDenied(t, rl, 5)
		if d.Code != DecisionConcurrencyLimit || d.RetryAfter <= 0 || d.RetryAfter > 10*time.Minute || d.Stats.Concurrent != 2 {
			t.Errorf("%+v; want the concurrency's limit", d)
		}
		first.Commit(1, 1)
		third := memTake(t, rl, 5)
		memDenied(t, rl, 5)
		first.Commit(1, 1)
		first.Cancel()
		memDenied(t, rl, 5)
		second.Cancel()
		time.Sleep(time.Minute)
		memTake(t, rl, 5) // the caller dies, and never ends the call
		if s := rl.Stats(memModel); s.Concurrent != 2 {
			t.Errorf("%+v; want 2 at a time", s)
		}
		time.Sleep(9*time.Minute - 1)
		if d := memDenied(t, rl, 5); d.RetryAfter != 1 {
			t.Errorf("1ns before the third's lease ends: %+v", d)
		}
		time.Sleep(time.Nanosecond)
		memTake(t, rl, 5)
		memDenied(t, rl, 5)
		third.Commit(1, 1) // too late for a refund
		memDenied(t, rl, 5)
		time.Sleep(time.Minute)
		if s := rl.Stats(memModel); s.Concurrent != 1 {
			t.Errorf("%+v; want 1 at a time", s)
		}
	})
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
