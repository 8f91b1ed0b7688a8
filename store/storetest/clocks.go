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

// anyClock: however the clock goes back and forth, and whatever is settled after that, no more
// passes than the limit allows in the time that has passed, which is at least the sum of all steps
// forward.
func anyClock(t *testing.T, newStore opener) {
	c := newClock()
	s := newStore(t, c.now)
	kinds := slices.Sorted(maps.Keys(everyRule(1, time.Minute)))
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		l := everyRule(oneOf[int64](t, "count", 5, 1, 20), time.Minute)[oneOf(t, "kind", kinds...)].Limit
		w := &wander{T: t, store: s, clock: c, key: fmt.Sprint("key ", number), limits: []limit.Limit{l}}
		if rapid.Bool().Draw(t, "beside") {
			w.limits = append(w.limits, besides[1]...)
		}
		c.set(oneOf(t, "start", starts...))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(l.Period())
		}
		if l.Algorithm() == limit.FixedWindow {
			// A window that is over is full, and may be forgotten: a clock that goes
			// back into it opens it again.
			l = l.WithCount(l.Count() * (1 + w.back))
		}
		checkBound(t, l, w.passed)
	})
}

// stepsInTurns: a clock that goes back and forth over a boundary, with limits that alternate with
// it, lets no more pass than the largest limit does in the time that has passed.
func stepsInTurns(b *bench, of byCount) {
	for _, counts := range [][2]int64{{20, 20}, {10, 20}, {20, 10}} {
		b.reset("")
		b.clock.set(midnight.Add(-3 * time.Second))
		forward := int64(0)
		var all []admission
		for range 4 {
			for i, by := range []time.Duration{6 * time.Second, -6 * time.Second} {
				l := of(counts[i])
				left := b.left("key", l)
				if r, _ := b.take(charge("key", left, l)); r == nil && left > 0 {
					b.Fatalf("%d of %v are left, and denied", left, l)
				}
				all = append(all, admission{forward, forward, left})
				b.clock.add(by)
				forward += max(int64(by), 0)
			}
		}
		checkBound(b.T, of(max(counts[0], counts[1])), all)
	}
}

// wander is a key whose clock goes back and forth.
type wander struct {
	*rapid.T
	store    store.Store
	clock    *clock
	key      string
	limits   []limit.Limit
	forward  int64 // all steps forward
	back     int64 // how many steps back
	passed   []admission
	receipts []store.Receipt // of each of them, or nil once it is settled
}

func (w *wander) step(period time.Duration) {
	by := oneOf(w.T, "by", 0, 0, 1, period/20, period/3, period, -1, -period/20, -period/3, -period, -time.Hour, -26*time.Hour)
	w.clock.add(by)
	w.forward += max(int64(by), 0)
	if by < 0 {
		w.back++
	}
	var err error
	switch rapid.IntRange(0, 4).Draw(w.T, "op") {
	case 0, 1:
		err = w.take(rapid.Int64Range(0, w.limits[0].Count()).Draw(w.T, "n"))
	case 2:
		_, err = w.store.Peek(w.Context(), []store.Charge{charge(w.key, 1, w.limits...)})
	default:
		if len(w.receipts) > 0 {
			err = w.settle(rapid.IntRange(0, len(w.receipts)-1).Draw(w.T, "which"))
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *wander) take(n int64) error {
	r, _, err := w.store.Take(w.Context(), []store.Charge{charge(w.key, n, w.limits...)})
	if r != nil {
		w.passed = append(w.passed, admission{w.forward, w.forward, n})
		w.receipts = append(w.receipts, r)
	}
	return err
}

// settle settles a take for less, the same or more. A debt is no admission.
func (w *wander) settle(i int) error {
	if w.receipts[i] == nil {
		return nil
	}
	actual := rapid.Int64Range(0, w.limits[0].Count()+1).Draw(w.T, "actual")
	err := w.store.Settle(w.Context(), w.receipts[i], []int64{actual})
	w.passed[i].n, w.receipts[i] = min(w.passed[i].n, actual), nil
	return err
}
