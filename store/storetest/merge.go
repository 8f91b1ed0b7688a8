package storetest

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// manyEntries: a log of more than 4,096 entries may count takes that have left its window, for at
// most 1/1024 of the window, and always counts those that have not.
func manyEntries(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l := limit.PerMinute(1 << 40).Using(limit.SlidingLog)
	var all []passed
	since := func(t int64) (sum int64) {
		for _, p := range all {
			if p.at > t {
				sum += p.n
			}
		}
		return sum
	}
	compare := func() {
		t.Helper()
		used := l.Count() - b.left("key", l)
		begins := b.clock.now() - int64(l.Period())
		if least, most := since(begins), since(begins-int64(l.Period())/1024); used < least || used > most {
			t.Fatalf("%d are counted after %d entries; it must be from %d to %d", used, len(all), least, most)
		}
	}
	for i := range 4096 + 512 {
		n := int64(1 + i%7)
		b.mustTake(charge("key", n, l))
		all = append(all, passed{at: b.clock.now(), n: n})
		b.clock.add(13*time.Millisecond + time.Duration(i))
		if i > 4000 && i%64 == 0 {
			compare()
		}
	}
	for range 70 {
		compare()
		b.clock.add(time.Second)
	}
	b.wantLeft(l.Count(), "key", l, "after all has left")
}
