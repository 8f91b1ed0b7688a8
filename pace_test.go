package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// wantEven checks that in no span of time more has passed than a burst and what the quota lets out
// in that span.
func wantEven(t *testing.T, passed []served, amount func(served) int, burst, perMinute int) {
	t.Helper()
	for i := range passed {
		sum := 0
		for k := i; k < len(passed); k++ {
			sum += amount(passed[k])
			span := passed[k].at.Sub(passed[i].at)
			if most := float64(burst) + float64(perMinute)*span.Minutes() + 1e-6; float64(sum) > most {
				t.Fatalf("within %v %d have passed; want at most %.2f", span, sum, most)
			}
		}
	}
}

// wantAllMinutes checks that all of the quota was used in each minute.
func wantAllMinutes(t *testing.T, start time.Time, minutes int, passed []served, amount func(served) int, least int) {
	t.Helper()
	used := make([]int, minutes)
	for _, s := range passed {
		if m := int(s.at.Sub(start) / time.Minute); m < minutes {
			used[m] += amount(s)
		}
	}
	for m, n := range used {
		if n < least {
			t.Errorf("in minute %d %d have passed; want %d: %d", m, n, least, used)
			return
		}
	}
}

// A crowd waits for a model with a pace: its requests pass evenly, and as many as without.
func TestPaceOfRequests(t *testing.T) {
	for _, percent := range []limit.Percent{0, 1, 50, 100} {
		quota := ratelimit.ModelQuota{MaxRPM: 60, Pace: ratelimit.PaceEven, PaceBurst: percent}
		burst := max(int(60*percent/100), 1)
		if percent == 0 {
			burst = 6
		}
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			everyLedger(t, quotas{"m": quota}, func(t *testing.T, rl *ratelimit.RateLimiter) {
				const minutes = 4
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				var mu sync.Mutex
				var passed []served
				var group sync.WaitGroup
				for range 320 { // more than pass
					group.Go(func() {
						if _, err := rl.Acquire(ctx, "m", 1); err == nil {
							mu.Lock()
							passed = append(passed, served{at: time.Now()})
							mu.Unlock()
						}
					})
				}
				time.Sleep(minutes*time.Minute - 1)
				cancel()
				group.Wait()
				wantEven(t, passed, one, burst, 60)
				wantAllMinutes(t, start, minutes, passed, one, 60)
			})
		})
	}
}

// Whatever is asked for, and used, a paced model decides like a naive bucket: a call passes if what
// was let out ahead of time, and the call, are at most the burst, or if nothing was.
func TestPaceLikeANaiveBucket(t *testing.T) {
	const most, burst = 100_000, 10_000
	everyLedger(t, quotas{"m": {MaxTPM: most, Pace: ratelimit.PaceEven}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		random := rand.New(rand.NewPCG(3, 4))
		ahead, last := 0.0, time.Now()
		larger, denied := 0, 0
		for i := range testkit.Rounds(1000, 3000) {
			time.Sleep(time.Duration(random.Int64N(int64(6 * time.Second))))
			ahead = max(0, ahead-time.Since(last).Minutes()*most)
			last = time.Now()
			n := 1 + random.IntN([]int{100, burst, 3 * burst}[random.IntN(3)])
			passes := ahead+float64(n) <= burst || ahead == 0
			res, d := rl.TryAcquire("m", n)
			if d.Stats.TPM+n > most && res == nil && d.Limit == "max_tpm" {
				continue // the minute itself
			}
			if (res != nil) != passes {
				t.Fatalf("call %d of %d with %.3f ahead: %+v; want it to pass: %t", i, n, ahead, d, passes)
			}
			if res == nil {
				denied++
				want := time.Duration((ahead + float64(n) - max(burst, float64(n))) / most * float64(time.Minute))
				if d.Limit != "max_tpm_pace" || (d.RetryAfter-want).Abs() > time.Microsecond {
					t.Fatalf("call %d of %d with %.3f ahead: %v by %s; want %v", i, n, ahead, d.RetryAfter, d.Limit, want)
				}
				continue
			}
			if n > burst {
				larger++
			}
			used := n
			switch random.IntN(4) {
			case 0:
				used = random.IntN(n + 1)
			case 1:
				used = n + random.IntN(burst)
			}
			res.Commit(used, 0)
			ahead += float64(used)
		}
		if larger < 50 || denied < 50 {
			t.Errorf("%d calls larger than the burst have passed, %d were denied; want more of each", larger, denied)
		}
	})
}

// A denial says that the pace denies, and how much may pass at once.
func TestPaceIsTold(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 60, Pace: ratelimit.PaceEven}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		for range 6 {
			if _, d := rl.TryAcquire("m", 0); !d.Allowed {
				t.Fatalf("%+v", d)
			}
		}
		_, d := rl.TryAcquire("m", 0)
		want := "the model is paced: 6 of its 60 requests a minute may pass at once: try again in 1s"
		if d.Allowed || d.Code != ratelimit.DecisionRPMLimit || d.Limit != "max_rpm_pace" || d.RetryAfter != time.Second || d.Reason() != want || d.Stats.RPM != 6 {
			t.Errorf("%+v", d)
		}
		rl.RecordUsage("m", 0, 0) // it is charged whatever the pace says
		if d := rl.Decide("m", 0); d.RetryAfter != 2*time.Second || d.Stats.RPM != 7 {
			t.Errorf("%+v", d)
		}
	})
}

// Usage that is recorded leaves a call what it is refunded.
func TestPaceOfRecordedUsage(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxTPM: 6000, Pace: ratelimit.PaceEven}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		res, _ := rl.TryAcquire("m", 500)
		rl.RecordUsage("m", 1000, 0)
		if d := rl.Decide("m", 100); d.Limit != "max_tpm_pace" || d.RetryAfter != 10*time.Second {
			t.Errorf("%+v", d)
		}
		res.Cancel()
		if d := rl.Decide("m", 100); d.Limit != "max_tpm_pace" || d.RetryAfter != 5*time.Second {
			t.Errorf("after a refund: %+v", d)
		}
	})
}

// Projects share a paced model by weight.
func TestPaceAndShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := ratelimit.ModelQuota{MaxRPM: 60, Pace: ratelimit.PaceEven}
		c := newCompetition(t, quota)
		c.queue(weighing("heavy", 3), 1200, nil)
		c.queue(weighing("light", 1), 600, nil)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		c.wantShares("heavy", "light", one, 60)
		if shares := c.rl.Shares("m"); len(shares) != 2 {
			t.Errorf("%d shares; want one of the requests for each project: %+v", len(shares), shares)
		}
		if n := len(c.served["heavy"]) + len(c.served["light"]); n < 20*60*98/100 {
			t.Errorf("%d have passed in 20 minutes; want all", n)
		}
	})
}

func TestPaceIsValid(t *testing.T) {
	for want, q := range map[string]ratelimit.ModelQuota{
		`pace of "fast": it must be even, or nothing`:                       {MaxRPM: 60, Pace: "fast"},
		"burst of -1%: it must be from 0%, which is 10%, to 100%":           {MaxRPM: 60, Pace: ratelimit.PaceEven, PaceBurst: -1},
		"burst of 101%: it must be from 0%":                                 {MaxRPM: 60, Pace: ratelimit.PaceEven, PaceBurst: 101},
		"burst of 5% without a pace: pace must be even":                     {MaxRPM: 60, PaceBurst: 5},
		"a pace without a maximum by the minute: one of max_rpm, max_tpm, ": {MaxRPD: 60, Pace: ratelimit.PaceEven},
	} {
		if err := q.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", q, err, want)
		}
	}
	for _, q := range []ratelimit.ModelQuota{{MaxTPM: 1, Pace: ratelimit.PaceEven}, {Auto: true, Pace: ratelimit.PaceEven, PaceBurst: 100}} {
		if err := q.Validate(); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// On two nodes that share a Redis, a call that is larger than the burst is a debt for both, until it
// is refunded.
func TestPaceOnRedis(t *testing.T) {
	url := redistest.New(t).URL()
	q := quotas{"m": {MaxTPM: 600_000, Pace: ratelimit.PaceEven}} // 10,000 a second; a burst of 60,000
	one, other := onRedis(t, url, q), onRedis(t, url, q)
	large, d := one.TryAcquire("m", 400_000)
	if large == nil {
		t.Fatalf("%+v", d)
	}
	_, d = other.TryAcquire("m", 1)
	if d.Limit != "max_tpm_pace" || d.RetryAfter > 34*time.Second+time.Millisecond || d.RetryAfter < 10*time.Second {
		t.Errorf("behind a large call: %+v", d)
	}
	_, d = other.TryAcquire("m", 70_000)
	if d.Limit != "max_tpm_pace" || d.RetryAfter > 40*time.Second || d.RetryAfter < 16*time.Second {
		t.Errorf("a second large call: %+v", d)
	}
	large.Commit(50_000, 0)
	testkit.Eventually(t, "a call of another process passes after a refund", func() bool {
		res, _ := other.TryAcquire("m", 1)
		return res != nil
	})
}
