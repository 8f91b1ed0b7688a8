package ratelimit_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
)

const margin = 2 * time.Second

// arrival is a call that has arrived at its provider.
type arrival struct {
	at     time.Time
	tokens int
}

// arrivals records when calls arrive at the provider.
type arrivals struct {
	mu   sync.Mutex
	list []arrival
}

func (d *arrivals) arrive(tokens int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, arrival{time.Now(), tokens})
}

// most returns the most requests and tokens that arrived within a span.
func (d *arrivals) most(span time.Duration) (requests, tokens int) {
	slices.SortFunc(d.list, func(a, b arrival) int { return a.at.Compare(b.at) })
	first, sum := 0, 0
	for i, a := range d.list {
		for ; !a.at.Before(d.list[first].at.Add(span)); first++ {
			sum -= d.list[first].tokens
		}
		sum += a.tokens
		requests, tokens = max(requests, i-first+1), max(tokens, sum)
	}
	return requests, tokens
}

// delay draws how long a call takes to arrive. The extremes are frequent.
func delay(most time.Duration) time.Duration {
	switch rand.IntN(4) {
	case 0:
		return 0
	case 1:
		return most
	}
	return rand.N(most + 1)
}

// press makes calls of m for some minutes from many goroutines, which want more than its
// quota. Each call arrives up to delayed after it was admitted.
func press(t *testing.T, delayed time.Duration, all ...*ratelimit.RateLimiter) *arrivals {
	d := new(arrivals)
	stop := time.Now().Add(5 * time.Minute)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			for rl := all[i%len(all)]; time.Now().Before(stop); {
				res, err := rl.Acquire(t.Context(), "m", 10)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(delay(delayed))
				d.arrive(10)
				time.Sleep(delay(3 * time.Second)) // until the provider answers
				res.Commit(6, 4)
			}
		})
	}
	wg.Wait()
	return d
}

// Counted by when calls arrive, a limit of 500 a minute once let 509 through, because calls
// take different times from their admission to the provider. As long as no call takes longer
// than the margin, no 60 seconds at the provider hold more than the quota. Without a margin
// they do, which shows that the test can fail.
func TestNoMinuteAtTheProviderHoldsMore(t *testing.T) {
	for name, most := range map[string]ratelimit.ModelQuota{
		"requests": {MaxRPM: 50},
		"tokens":   {MaxTPM: 500},
		"both":     {MaxRPM: 50, MaxTPM: 450, MaxInputTPM: 480, MaxOutputTPM: 480},
	} {
		for _, m := range []time.Duration{0, margin} {
			q := most
			q.Margin = m
			t.Run(fmt.Sprintf("%s/%v", name, m), func(t *testing.T) {
				everyLedger(t, quotas{"m": q}, func(t *testing.T, rl *ratelimit.RateLimiter) {
					wantMost(t, press(t, margin, rl), q)
				})
			})
		}
	}
}

// wantMost fails the test unless no more than the quota arrived, and all of it was used.
// Without a margin, more must have arrived.
func wantMost(t *testing.T, d *arrivals, q ratelimit.ModelQuota) {
	t.Helper()
	requests, tokens := d.most(time.Minute)
	mostRequests, mostTokens := cmp.Or(q.MaxRPM, 1<<30), cmp.Or(q.MaxTPM, 1<<30)
	if exceeded := requests > mostRequests || tokens > mostTokens; exceeded != (q.Margin == 0) {
		t.Errorf("%d requests and %d tokens arrive in a minute; the quota is %+v", requests, tokens, q)
	}
	if n, least := len(d.list), 5*min(mostRequests, mostTokens/10)*9/10; n < least {
		t.Errorf("%d calls arrive in 5 minutes; want at least %d", n, least)
	}
}

// Two limiters on one file together keep to the quota, as the provider counts.
func TestNoMinuteAtTheProviderHoldsMoreThanTwoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ratelimit.ModelQuota{MaxRPM: 50, Margin: margin}
		a, b := two(t, quotas{"m": q})
		wantMost(t, press(t, margin, a, b), q)
	})
}

// A day begins with its first call, which may be the last to arrive. Calls of the next day
// arrive after the provider's day has ended, too.
func TestNoDayAtTheProviderHoldsMore(t *testing.T) {
	for _, m := range []time.Duration{0, margin} {
		t.Run(m.String(), func(t *testing.T) {
			everyLedger(t, quotas{"m": {MaxRPD: 5, Margin: m}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
				var d arrivals
				fill(rl, "m", 1)
				time.Sleep(margin)
				for range 5 {
					d.arrive(1)
				}
				if _, err := rl.Acquire(t.Context(), "m", 1); err != nil {
					t.Fatal(err)
				}
				d.arrive(1)
				if n, _ := d.most(day); (n > 5) != (m == 0) {
					t.Errorf("%d of 5 a day arrive in 24 hours", n)
				}
			})
		})
	}
}

// Stats have the quota's maxima, and RetryAfter includes the margin.
func TestMarginIsToldInWaits(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 2, MaxRPD: 3, Margin: margin}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		p := &play{T: t, rl: rl, start: time.Now()}
		p.try("m", 5, ok, 0)
		p.try("m", 5, ok, 0)
		p.try("m", 5, overRPM, time.Minute+margin)
		if d := rl.Decide("m", 5); d.Reason() != "2 of 2 requests a minute used: try again in 1m2s" || d.Stats.MaxRPM != 2 {
			t.Errorf("%+v", d)
		}
		time.Sleep(time.Minute + margin - 1)
		p.try("m", 5, overRPM, 1)
		p.used(2, 10, 2)
		time.Sleep(time.Nanosecond)
		p.used(0, 0, 2)
		p.try("m", 5, ok, 0)
		p.try("m", 5, overRPD, day-time.Minute)
		time.Sleep(day - time.Minute - 1)
		p.try("m", 5, overRPD, 1)
		time.Sleep(time.Nanosecond)
		p.try("m", 5, ok, 0)
	})
}

// A change of the margin forgets no usage that is still known: neither that of the day, which
// ends when it would have, nor that of the minute.
func TestMarginChangesAndNothingIsForgotten(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 3, MaxRPD: 5}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		p := &play{T: t, rl: rl, start: time.Now()}
		long := ratelimit.ModelQuota{MaxRPM: 3, MaxRPD: 5, Margin: margin}
		first := p.try("m", 5, ok, 0)
		time.Sleep(30 * time.Second)
		p.try("m", 5, ok, 0)
		time.Sleep(30*time.Second - 1)
		p.setQuota(long)
		time.Sleep(time.Nanosecond)
		p.used(2, 10, 2)
		time.Sleep(margin)
		p.used(1, 5, 2)
		first.Cancel() // the call has left the minute
		p.used(1, 5, 1)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 3, MaxRPD: 5})
		p.used(1, 5, 1)
		p.setQuota(long)
		p.try("m", 5, ok, 0)
		p.try("m", 5, ok, 0)
		time.Sleep(2 * time.Minute)
		p.try("m", 5, ok, 0)
		p.try("m", 5, ok, 0)
		p.try("m", 5, overRPD, day-time.Since(p.start))
	})
}

// Usage that has left the minute does not come back with a longer margin, and its settlement
// refunds nothing of another call.
func TestMarginGrowsAfterACallHasLeft(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		p := &play{T: t, rl: rl, start: time.Now()}
		first := p.try("m", 40, ok, 0)
		time.Sleep(time.Second)
		p.try("m", 50, ok, 0)
		time.Sleep(time.Minute - 1)
		p.try("m", 50, ok, 0)
		p.setQuota(ratelimit.ModelQuota{MaxTPM: 100, Margin: ratelimit.MaxMargin})
		first.Commit(1, 0)
		if s := rl.Stats("m"); s.TPM < 100 {
			t.Errorf("%+v: what the first call gave back was another's", s)
		}
	})
}

// Limiters with different margins on one file never admit more than the one with the shorter
// windows would alone, and both have the same day.
func TestDifferentMarginsOnOneFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, long := ratelimit.ModelQuota{MaxRPM: 50}, ratelimit.ModelQuota{MaxRPM: 50, Margin: margin}
		a, b := two(t, quotas{"m": short})
		mustSetQuota(t, b, "m", long)
		if requests, _ := press(t, 0, a, b).most(time.Minute); requests != 50 {
			t.Errorf("%d arrive in a minute; want 50", requests)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quotas{"m": {MaxRPD: 10}})
		mustSetQuota(t, b, "m", ratelimit.ModelQuota{MaxRPD: 10, Margin: margin})
		for i := range 10 {
			mustTake(t, []*ratelimit.RateLimiter{a, b}[i%2], 1)
		}
		for _, rl := range []*ratelimit.RateLimiter{a, b} {
			if d := rl.Decide("m", 1); d.Allowed || d.Stats.RPD != 10 || d.RetryAfter < day {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Limiters whose configurations have different margins share a Redis exactly.
func TestDifferentMarginsOnOneRedis(t *testing.T) {
	url := redistest.New(t).URL()
	var all []*ratelimit.RateLimiter
	for _, m := range []time.Duration{0, margin, ratelimit.MaxMargin} {
		all = append(all, onRedis(t, url, quotas{
			"m": {MaxRPM: 30, Margin: m}, "requests_per_day": {MaxRPD: 30, Margin: m}, "tokens": {MaxTPM: 300, MaxTPD: 310, Margin: m},
		}))
	}
	for _, model := range []string{"m", "requests_per_day", "tokens"} {
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for i := range 90 {
			wg.Go(func() {
				if _, d := all[i%len(all)].TryAcquire(model, 10); d.Allowed {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n != 30 {
			t.Errorf("%s: %d pass; want 30", model, n)
		}
	}
}

// The provider does not count calls that only the margin still counts. If they counted as its
// usage, they would hide what others use: 200 of 500 here.
func TestMarginHidesNothingThatIsUsedElsewhere(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 500, Margin: margin}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		p := &play{T: t, rl: rl, start: time.Now()}
		fill(rl, "m", 1)
		time.Sleep(61 * time.Second) // an answer that took long
		p.hears(leaves(llm.Requests, time.Minute, 300, time.Hour))
		time.Sleep(time.Second)
		if n, d := fill(rl, "m", 1); n != 300 {
			t.Errorf("%d pass, and then %+v; the provider has 300", n, d)
		}
	})
}

// If nobody else uses the account, no limit is lowered, however many calls are in the margin.
func TestMarginIsNotUsedElsewhere(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 10, Margin: margin}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		p := &play{T: t, rl: rl, start: time.Now()}
		fill(rl, "m", 1)
		for _, at := range []time.Duration{0, 59 * time.Second, 61 * time.Second, 62 * time.Second} {
			time.Sleep(at - time.Since(p.start))
			remaining := int64(0)
			if at > time.Minute {
				remaining = 10
			}
			p.hears(leaves(llm.Requests, time.Minute, remaining, time.Hour))
		}
		if n, d := fill(rl, "m", 1); n != 10 {
			t.Errorf("%d pass, and then %+v; want 10", n, d)
		}
	})
}

// A margin and a reserve are kept where quotas are kept.
func TestMarginIsKept(t *testing.T) {
	want := quotas{"m": {MaxRPM: 5, Margin: 1500 * time.Millisecond, Auto: true, Reserve: 33.3, ReserveTokens: "expected", OnOverrun: "debt"}, "n": {MaxRPM: 5}, "o": {MaxTPD: 1, Margin: time.Nanosecond}}
	yaml, file := filepath.Join(t.TempDir(), "limits.yaml"), filepath.Join(t.TempDir(), "limits.db")
	mustPersist(t, newYAML(t, yaml, want))
	again := newYAML(t, yaml, quotas{"m": {MaxRPM: 1}})
	mustLoad(t, again)
	mustPersist(t, openFile(t, file, want))
	migrated := filepath.Join(t.TempDir(), "migrated.db")
	if err := ratelimit.MigrateYAMLToSQLite(yaml, migrated); err != nil {
		t.Fatal(err)
	}
	for name, rl := range map[string]*ratelimit.RateLimiter{
		"yaml": again, "sqlite": openFile(t, file, quotas{"m": {MaxRPM: 1}}), "migrated": openFile(t, migrated, quotas{"m": {MaxRPM: 1}}),
	} {
		if got := rl.Quotas(); !maps.Equal(got, want) {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
}

// An invalid margin is refused in every place, with an error that says what is allowed.
func TestMarginOutOfRange(t *testing.T) {
	rl := newYAML(t, filepath.Join(t.TempDir(), "limits.yaml"), quotas{"m": {MaxRPM: 1}})
	for _, m := range []time.Duration{-1, ratelimit.MaxMargin + 1} {
		if err := rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 1, Margin: m}); err == nil || !strings.Contains(err.Error(), "it must be from 0s to 30s") {
			t.Errorf("%v: %v", m, err)
		}
	}
	for _, text := range []string{"2", "31s", "-1s", "fast", "", "~", "[2s]"} {
		path := yamlFile(t, "quotas:\n  m:\n    margin: "+text+"\n")
		if err := newYAML(t, path, quotas{"m": {MaxRPM: 1}}).Load(); err == nil || !strings.Contains(err.Error(), "it must be") || !strings.Contains(err.Error(), path+":") {
			t.Errorf("%q: %v; want what is allowed, and where", text, err)
		}
	}
	for _, value := range []string{"'much'", "-1", "30000000001", "NULL"} {
		path := filepath.Join(t.TempDir(), "limits.db")
		file := openFile(t, path, quotas{"m": {MaxRPM: 3}})
		mustPersist(t, file)
		closeFile(t, file)
		execSQL(t, path, "ALTER TABLE quotas DROP COLUMN margin", "ALTER TABLE quotas ADD COLUMN margin", "UPDATE quotas SET margin = "+value)
		if _, err := ratelimit.NewWithSQLite(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error that names the file", value, err)
		}
	}
}
