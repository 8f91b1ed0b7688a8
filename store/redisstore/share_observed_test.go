package redisstore

import (
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// recordUsed records decisions on a key's limits of which so much was used.
func recordUsed(k *observations, key string, now, n int64, limits ...limit.Limit) {
	var a limit.Account
	impose(&a, limits, now, n)
	charges := []store.Charge{{Key: key, Limits: limits}}
	k.record(charges, k.beginTake(charges, false), decisionsOf(&a, now, limits), now)
}

func decisionsOf(a *limit.Account, now int64, limits []limit.Limit) (decisions []limit.Decision) {
	for _, l := range limits {
		decisions = append(decisions, a.Check(l, now, 0))
	}
	return decisions
}

// A node that has every limit to itself continues exactly from the state of Redis. A unit of a
// bucket that has begun to drain counts in full.
func TestObservationSeedsLedger(t *testing.T) {
	start := newFakeRedis().now()
	for name, l := range everyLimit {
		for _, c := range []struct {
			used  int64
			later time.Duration
		}{{3, 0}, {10, 0}, {3, 30 * time.Second}, {10, 30 * time.Second}, {7, 59 * time.Second}, {3, 24 * time.Hour}} {
			var a limit.Account
			limits := []limit.Limit{l}
			impose(&a, limits, start, c.used)
			k := newObservations()
			heardAt := start + int64(20*time.Second)
			charges := []store.Charge{{Key: "key", Limits: limits}}
			k.record(charges, k.beginTake(charges, false), decisionsOf(&a, heardAt, limits), heardAt)
			now := heardAt + int64(c.later)
			g := &ledger{key: "key"}
			k.seed(g, whole, now)
			got, want := g.account.Check(l, now, 0), a.Check(l, now, 0)
			unit := time.Duration(0)
			if isBucket(l) {
				unit = l.Period() / time.Duration(l.Count())
			}
			if more := got.ResetAfter - want.ResetAfter; more < 0 || more > unit || unit == 0 && got.Remaining != want.Remaining {
				t.Errorf("%s: %v after %d were used: %+v; want %+v", name, c.later, c.used, got, want)
			}
			if owed := g.nextBill(now); owed != nil {
				t.Errorf("%s: Redis is owed %+v of what it said itself", name, owed)
			}
		}
	}
}

// The number of observations is bounded, and keys that are in use for longer are kept.
func TestObservationsAreBounded(t *testing.T) {
	k := newObservations()
	now := newFakeRedis().now()
	const long = 1000
	for i := range 100_000 {
		l := limit.PerSecond(10)
		if i < long {
			l = limit.PerDay(10)
		}
		recordUsed(k, fmt.Sprint(i), now, 5, l)
	}
	n, kept := len(k.appendKeys(nil, "", now)), 0
	for i := range long {
		if k.at(fmt.Sprint(i), now) != nil {
			kept++
		}
	}
	if n > maxObserved || n < maxObserved/2 {
		t.Errorf("%d keys are known", n)
	}
	if kept < long*9/10 {
		t.Errorf("%d keys of %d that last are known", kept, long)
	}
	if k.at("99999", now+int64(time.Minute)) != nil {
		t.Error("a key that is full is known")
	}
	recordUsed(k, "unused", now, 0, limit.PerDay(10))
	if k.at("unused", now) != nil {
		t.Error("a key of which nothing was used is known")
	}
}
