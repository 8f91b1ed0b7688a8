package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// countsThatChange: whatever the count of a limit becomes, its used amount counts, and every answer
// is the model's.
func countsThatChange(t *testing.T, newStore opener) {
	c := newClock()
	s := newStore(t, c.now)
	kinds := slices.Sorted(maps.Keys(everyRule(1, time.Minute)))
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		kind, period := oneOf(t, "kind", kinds...), oneOf(t, "period", time.Minute, 7, time.Hour, 999_999_937)
		c.set(oneOf(t, "start", starts...))
		now := everyRule(oneOf[int64](t, "count", 3, 1000, 10), period)[kind]
		k := newKey(fmt.Sprintf("history %d", number), []rule{now})
		h := &history{T: t, store: s, clock: c, keys: []*key{k}}
		for range rapid.IntRange(2, 20).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "change") {
				now = everyRule(oneOf[int64](t, "count", 3, 1, 2, 5, 10, 97, 1000), period)[kind]
			}
			last := k.last[0]
			by := oneOf(t, "by", 0, 1, period/time.Duration(now.Count())+1, period/3, max(last.reset-1, 0), period, -1, -period/3, -26*time.Hour)
			if by < 0 && now.Limit.Algorithm() == limit.SlidingLog { // a denial need not be written, so expired takes may count again
				by = 0
			}
			if by < 0 && k.anyFull(c.now()) { // the key may be forgotten, or not
				k = newKey(fmt.Sprintf("history %d after %d steps", number, len(h.steps)), []rule{now})
				h.keys = []*key{k}
			}
			c.add(by)
			k.setRules([]rule{now}, c.now())
			n := oneOf(t, "n", 1, last.remaining, now.Count(), now.Count()/2, now.Count()+1)
			h.takeThese([]*key{k}, []store.Charge{charge(k.name, n, now.Limit)})
		}
	})
}

// begunAnew: another algorithm, another way in which windows begin, or another period is another
// limit.
func begunAnew(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	of, longer := everyRule(10, time.Minute), everyRule(10, time.Hour)
	for name, r := range of {
		for other, changed := range of {
			key := name + " becomes " + other
			b.mustTake(charge(key, 10, r.Limit))
			if name != other {
				b.wantLeft(10, key, changed.Limit, "of "+key)
			}
		}
		if l := longer[name].Limit; l != r.Limit && l.Algorithm() != limit.SlidingLog { // all periods share one log
			b.mustTake(charge(name, 10, r.Limit))
			b.wantLeft(10, name, l, "of one that was a minute's")
		}
	}
}

// otherDays: the used amount of a day stays when days begin at another time, until the new day
// ends.
func otherDays(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	pacific, kathmandu := daily(10, 0, "America/Los_Angeles"), daily(10, 0, "Asia/Kathmandu")
	b.mustTake(charge("key", 4, pacific.Limit))
	b.mustTake(charge("key", 1, kathmandu.Limit))
	b.wantLeft(5, "key", pacific.Limit, "after 4 and 1 were used")
	retry := b.mustNotTake(charge("key", 6, kathmandu.Limit))
	if _, end := kathmandu.windows.of(b.clock.now()); b.clock.now()+int64(retry) != end {
		t.Errorf("the day ends at %d; come back after %v, which is %d", end, retry, b.clock.now()+int64(retry))
	}
	b.clock.add(retry)
	b.wantLeft(10, "key", kathmandu.Limit, "of a new day")
}

// byCount returns limits of one kind that differ in their counts.
type byCount func(count int64) limit.Limit

// ofEveryChange runs a test for each kind of limit.
func ofEveryChange(period time.Duration, test func(b *bench, of byCount)) func(t *testing.T, newStore opener) {
	return func(t *testing.T, newStore opener) {
		for name := range everyRule(1, period) {
			t.Run(name, func(t *testing.T) {
				test(newBench(t, newStore), func(count int64) limit.Limit { return everyRule(count, period)[name].Limit })
			})
		}
	}
}

// raisedAndLowered: used amounts stay used.
func raisedAndLowered(b *bench, of byCount) {
	b.mustTake(charge("key", 60, of(100)))
	b.wantLeft(140, "key", of(200), "of 200 after 60 of 100 were used")
	b.mustTake(charge("key", 100, of(200)))
	b.wantLeft(0, "key", of(50), "of 50 after 160 were used")
	b.mustNotTake(charge("key", 1, of(50)))
	b.wantLeft(40, "key", of(200), "of 200 after 160 were used")
}

// loweredForAMoment: a limit that is lowered to 1 and raised again has not forgotten what was used
// before.
func loweredForAMoment(b *bench, of byCount) {
	const many = 1_000_000_000
	b.mustTake(charge("key", many, of(many)))
	b.mustNotTake(charge("key", 1, of(1)))
	b.wantLeft(0, "key", of(many), "after the limit was 1 for a moment")
}

// changedWhileOpen: takes from before a change and from after it are settled without harm to each
// other.
func changedWhileOpen(b *bench, of byCount) {
	before := b.mustTake(charge("key", 1, of(100)))
	b.clock.add(1)
	after := b.mustTake(charge("key", 50, of(101)))
	b.settle(before, 1)
	b.wantLeft(50, "key", of(101), "after 1 and 50 were used")
	b.settle(after, 0)
	b.wantLeft(100, "key", of(101), "after 1 was used and 50 given back")
}

// owedAfterAChange: a take from before a change that used more than its amount owes the rest after
// the change.
func owedAfterAChange(b *bench, of byCount) {
	before := b.mustTake(charge("key", 1, of(100)))
	other := b.mustTake(charge("key", 2, of(100)))
	b.clock.add(1)
	b.mustTake(charge("key", 50, of(101)))
	b.settle(before, 4)
	b.wantLeft(45, "key", of(101), "after 4, 2 and 50 were used")
	b.settle(other, 0) // a bucket gives nothing of it back
	if left := b.peek(charge("key", 0, of(101)))[0].Remaining; left != 45 && left != 47 {
		b.Errorf("%d are left after 2 of them were given back", left)
	}
}

// peekedUnderAnother: a peek under another count changes nothing.
func peekedUnderAnother(b *bench, of byCount) {
	r := b.mustTake(charge("key", 6, of(10)))
	b.clock.add(1)
	before := b.peek(charge("key", 0, of(10)))[0]
	b.peek(charge("key", 1, of(5)))
	if after := b.peek(charge("key", 0, of(10)))[0]; after != before {
		b.Errorf("%+v became %+v", before, after)
	}
	b.settle(r, 0)
	b.wantLeft(10, "key", of(10), "after all was given back")
}

// passesWhenToldAfterAChange: a take that is denied after a change passes at its RetryAfter.
func passesWhenToldAfterAChange(b *bench, of byCount) {
	b.mustTake(charge("key", 1, of(1)))
	retry := b.mustNotTake(charge("key", 60, of(60)))
	b.clock.add(retry - 1)
	b.mustNotTake(charge("key", 60, of(60)))
	b.clock.add(1)
	b.mustTake(charge("key", 60, of(60)))
}
