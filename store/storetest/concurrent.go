package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// atOnce runs a function on several goroutines, each with a random source.
func atOnce(do func(random *rand.Rand)) {
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Go(func() { do(rand.New(rand.NewPCG(i, 1))) })
	}
	all.Wait()
}

// exactlyTheLimit: while the clock stands still, exactly the limit passes, however many goroutines
// ask at once.
func exactlyTheLimit(b *bench, l limit.Limit) {
	var passed atomic.Int64
	atOnce(func(random *rand.Rand) {
		for denied := false; !denied; {
			n := 1 + random.Int64N(3)
			r, _, err := b.store.Take(b.Context(), []store.Charge{charge("key", n, l)})
			if err != nil {
				b.Errorf("take %d of %v: %v", n, l, err)
				return
			}
			denied = r == nil && n == 1
			if r != nil && passed.Add(n) > l.Count() {
				return
			}
		}
	})
	if got := passed.Load(); got != l.Count() {
		b.Errorf("%d of %v have passed", got, l)
	}
	b.wantLeft(0, "key", l, "after all of it has passed")
}

// allOrNothing: takes of several keys, in any order, charge all of them or none.
func allOrNothing(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	limits := map[string]limit.Limit{}
	for name, r := range everyRule(60, 1_000_000_007) {
		limits[name] = r.Limit
	}
	keys := slices.Sorted(maps.Keys(limits))
	used := map[string]*atomic.Int64{}
	for _, key := range keys {
		used[key] = new(atomic.Int64)
	}
	var denied atomic.Int64
	atOnce(func(random *rand.Rand) {
		order := slices.Clone(keys)
		for range 60 {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			var charges []store.Charge
			for _, key := range order[:1+random.IntN(4)] {
				charges = append(charges, charge(key, random.Int64N(4), limits[key]))
			}
			r, decisions, err := b.store.Take(b.Context(), charges)
			if err != nil || (r != nil) != store.Allowed(decisions) {
				b.Errorf("take %s: %v, %+v, %v", described(charges), r, decisions, err)
				return
			}
			if r == nil {
				denied.Add(1)
				continue
			}
			actual := make([]int64, len(charges))
			for i, c := range charges {
				actual[i] = c.N
				if c.Limits[0].Algorithm() > limit.LeakyBucket { // a bucket may give only a part back
					actual[i] = random.Int64N(c.N + 1)
				}
				used[c.Key].Add(actual[i])
			}
			if err := b.store.Settle(b.Context(), r, actual); err != nil {
				b.Errorf("settle %s: %v", described(charges), err)
				return
			}
		}
	})
	if denied.Load() == 0 {
		t.Error("nothing was denied")
	}
	for _, key := range keys {
		b.wantLeft(limits[key].Count()-used[key].Load(), key, limits[key], "after takes of several keys at once")
	}
}

// orders: takes of the same keys in opposite orders do not deadlock.
func orders(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	var charges []store.Charge
	for name, r := range everyRule(100_000, 1_000_000_007) {
		charges = append(charges, charge(name, 1, r.Limit))
	}
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	var turn atomic.Int64
	atOnce(func(*rand.Rand) {
		mine := slices.Clone(charges)
		if turn.Add(1)%2 == 0 {
			slices.Reverse(mine)
		}
		for range rounds {
			r, d, err := b.store.Take(b.Context(), mine)
			if err != nil || r == nil {
				b.Errorf("take: %v, %+v, %v", r, d, err)
				return
			}
		}
	})
}

// admission is a take that was allowed at some time from lo to hi, and the amount that it used.
type admission struct{ lo, hi, n int64 }

// neverMoreOverTime: while the clock moves and takes are settled for less, no window holds more
// than the limit.
func neverMoreOverTime(b *bench, l limit.Limit) {
	var mu sync.Mutex
	var all []admission
	step := l.Period() / 61
	atOnce(func(random *rand.Rand) {
		for range 40 {
			n := 1 + random.Int64N(4)
			lo := b.clock.now()
			r, _, err := b.store.Take(b.Context(), []store.Charge{charge("key", n, l)})
			hi := b.clock.now()
			b.clock.add(step)
			if err != nil {
				b.Errorf("take: %v", err)
				return
			}
			if r == nil {
				continue
			}
			actual := random.Int64N(n + 1)
			mu.Lock()
			all = append(all, admission{lo, hi, actual})
			mu.Unlock()
			if err := b.store.Settle(b.Context(), r, []int64{actual}); err != nil {
				b.Errorf("settle: %v", err)
				return
			}
		}
	})
	if len(all) == 0 {
		b.Fatal("nothing has passed")
	}
	checkBound(b.T, l, all)
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkBound checks every span of time for more than may pass in it.
func checkBound(t failer, l limit.Limit, all []admission) {
	t.Helper()
	for _, first := range all {
		for _, last := range all {
			length := last.hi - first.lo
			if length < 0 {
				continue
			}
			sum := int64(0)
			for _, a := range all {
				if a.lo >= first.lo && a.hi <= last.hi {
					sum += a.n
				}
			}
			if most := mostIn(l, length); sum > most {
				t.Fatalf("%v: %d have passed from %d to %d, which is more than %d", l, sum, first.lo, last.hi, most)
			}
		}
	}
}

// mostIn returns how much may pass in a span of time that includes both of its ends, wherever it
// begins.
func mostIn(l limit.Limit, length int64) int64 {
	windows := length/int64(l.Period()) + 1 // how many cover the span
	switch l.Algorithm() {
	case limit.SlidingLog:
		return l.Count() * windows
	case limit.FixedWindow, limit.SlidingCounter:
		return l.Count() * (windows + 1)
	default:
		return l.Burst() + down(newBucketCounter(l).amount(rat(length)))
	}
}
