package redisstore

import (
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// hears lets k hear what a key's limits say, of which so much was used.
func hears(k *known, key string, now, n int64, limits ...limit.Limit) {
	var a limit.Account
	impose(&a, limits, now, n)
	k.hear([]store.Charge{{Key: key, Limits: limits}}, says(&a, now, limits), now)
}

func says(a *limit.Account, now int64, limits []limit.Limit) (decisions []limit.Decision) {
	for _, l := range limits {
		decisions = append(decisions, a.Check(l, now, 0))
	}
	return decisions
}

// A node that has every limit to itself goes on exactly where Redis was. A unit
// of a bucket that has begun to drain counts as a whole.
func TestHeard(t *testing.T) {
	start := newSim().now()
	for name, l := range everyLimit {
		for _, c := range []struct {
			used  int64
			later time.Duration
		}{{3, 0}, {10, 0}, {3, 30 * time.Second}, {10, 30 * time.Second}, {7, 59 * time.Second}, {3, 24 * time.Hour}} {
			var a limit.Account
			limits := []limit.Limit{l}
			impose(&a, limits, start, c.used)
			k := newKnown()
			heardAt := start + int64(20*time.Second)
			k.hear([]store.Charge{{Key: "key", Limits: limits}}, says(&a, heardAt, limits), heardAt)
			now := heardAt + int64(c.later)
			g := newLedger("key", k.of("key", now), whole)
			got, want := g.account.Check(l, now, 0), a.Check(l, now, 0)
			unit := time.Duration(0)
			if bucket(l) {
				unit = l.Period() / time.Duration(l.Count())
			}
			if more := got.ResetAfter - want.ResetAfter; more < 0 || more > unit || unit == 0 && got.Remaining != want.Remaining {
				t.Errorf("%s: %v after %d were used: %+v; want %+v", name, c.later, c.used, got, want)
			}
			if owed := g.next(now); owed != nil {
				t.Errorf("%s: Redis is owed %+v of what it said itself", name, owed)
			}
		}
	}
}

// What is known is bounded, and what lasts is kept rather than what is full soon.
func TestKnownIsBounded(t *testing.T) {
	k := newKnown()
	now := newSim().now()
	const long = 1000
	for i := range 100_000 {
		l := limit.PerSecond(10)
		if i < long {
			l = limit.PerDay(10)
		}
		hears(k, fmt.Sprint(i), now, 5, l)
	}
	n, kept := 0, 0
	k.names("", now, func(string) { n++ })
	for i := range long {
		if k.of(fmt.Sprint(i), now) != nil {
			kept++
		}
	}
	if n > 64*mostHeard || n < 32*mostHeard {
		t.Errorf("%d keys are known", n)
	}
	if kept < long*9/10 {
		t.Errorf("%d keys of %d that last are known", kept, long)
	}
	if k.of("99999", now+int64(time.Minute)) != nil {
		t.Error("a key that is full is known")
	}
	hears(k, "unused", now, 0, limit.PerDay(10))
	if k.of("unused", now) != nil {
		t.Error("a key of which nothing was used is known")
	}
}
