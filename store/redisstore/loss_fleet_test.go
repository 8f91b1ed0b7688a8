package redisstore

import (
	"math/bits"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// admitted is an amount that passed at a time.
type admitted struct{ at, n int64 }

// within returns the most that has passed in any window of a limit, less what so many buckets have
// drained in it. For an exact limit that is at most its burst.
func within(l limit.Limit, buckets int64, passed []admitted) (largest int64) {
	for i, first := range passed {
		sum := int64(0)
		for _, p := range passed[i:] {
			if !isBucket(l) && !sameWindow(l, first.at, p.at) {
				break
			}
			sum += p.n
			largest = max(largest, sum-buckets*drained(l, p.at-first.at))
		}
	}
	return largest
}

func sameWindow(l limit.Limit, a, b int64) bool {
	if l.Algorithm() == limit.FixedWindow {
		return b < a+int64(new(limit.Account).Check(l, a, 1).ResetAfter)
	}
	return b-a < int64(l.Period())
}

func drained(l limit.Limit, ns int64) int64 {
	if !isBucket(l) {
		return 0
	}
	hi, lo := bits.Mul64(uint64(l.Count()), uint64(ns))
	q, _ := bits.Div64(hi, lo, uint64(l.Period()))
	return int64(q)
}

// fleet is some nodes that share the limits of one key.
type fleet struct {
	*rapid.T
	sim     *fakeRedis
	nodes   []*fleetNode
	charges []store.Charge
	passed  []admitted         // anywhere
	by      map[any][]admitted // by a node that had lost Redis, or in Redis
}

// fleetLimits draws limits whose bounds are exact, each in any window of its own.
func fleetLimits(t *rapid.T) []limit.Limit {
	count := rapid.Int64Range(1, 40).Draw(t, "count")
	log := limit.PerMinute(count).Using(limit.SlidingLog)
	return rapid.SampledFrom([][]limit.Limit{
		{limit.PerMinute(count)},
		{limit.PerMinute(count).WithBurst(rapid.Int64Range(1, 90).Draw(t, "burst"))},
		{log},
		{limit.PerMinute(count).Using(limit.FixedWindow)},
		{log, limit.New(3*count, 4*time.Minute).Using(limit.SlidingLog)},
		{limit.PerMinute(count), log, limit.New(2*count, 3*time.Minute).Using(limit.FixedWindow)},
		{limit.PerMinute(count), limit.PerMinute(2 * count).WithBurst(count)},
	}).Draw(t, "limits")
}

func newFleet(t *rapid.T) *fleet {
	f := &fleet{T: t, sim: newFakeRedis(), by: map[any][]admitted{}}
	f.charges = []store.Charge{{Key: "key", Limits: fleetLimits(t)}}
	n := rapid.IntRange(1, 5).Draw(t, "nodes")
	for rank := range n {
		f.nodes = append(f.nodes, newFleetNode(f.sim, Share, share{rank, n}, nil))
	}
	return f
}

func (f *fleet) any() *fleetNode { return rapid.SampledFrom(f.nodes).Draw(f.T, "node") }

// take lets a node take, and perhaps settle for less at once.
func (f *fleet) take() {
	n := rapid.Int64Range(1, 12).Draw(f.T, "n")
	f.charges[0].N = n
	node := f.any()
	r, decisions, err := node.Take(f.Context(), f.charges)
	if err != nil {
		f.Fatal(err)
	}
	if (r != nil) != store.Allowed(decisions) {
		f.Fatalf("the receipt is %v of %+v", r, decisions)
	}
	if r == nil {
		return
	}
	f.passed = append(f.passed, admitted{f.sim.now(), n})
	where := any("redis")
	if _, here := r.(*localReceipt); here {
		where = node
	}
	f.by[where] = append(f.by[where], admitted{f.sim.now(), n})
}

func (f *fleet) pass() {
	f.sim.pass(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(f.T, "time")))
}

// hear lets all nodes learn the state of the key.
func (f *fleet) hear() {
	f.charges[0].N = 0
	for _, node := range f.nodes {
		if _, err := node.Peek(f.Context(), f.charges); err != nil {
			f.Fatal(err)
		}
	}
}

// check fails if more than so many limits have passed in any window.
func (f *fleet) check(times int64, passed []admitted) {
	for _, l := range f.charges[0].Limits {
		if got := within(l, times, passed); got > times*l.Burst() {
			f.Fatalf("%d have passed in a window of %v, more than %d times; nodes %d: %v", got, l, times, len(f.nodes), passed)
		}
	}
}

// All nodes lose Redis at once, having just had its answers, and charge it when it is back: no more
// than the limit passes in any window, as if it had never been lost.
func TestFleetGoesOnWhereItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		lost := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				f.pass()
			case 3:
				if !lost {
					f.hear()
				}
				lost = !lost
				for _, node := range f.nodes {
					node.wire.lost.Store(lost)
				}
				for _, node := range f.nodes {
					node.sweep(t.Context())
					if open := node.ledgers.count.Load(); !lost && open > 0 {
						t.Fatalf("%d ledgers are open after all was paid", open)
					}
				}
			default:
				f.take()
			}
		}
		f.check(1, f.passed)
	})
}

// Nodes lose Redis and find it again one by one, at any time: never more than twice the limit
// passes. Once all have charged Redis, and a window has passed, it is the limit again.
func TestFleetBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				f.pass()
			case 2, 3:
				node := f.any()
				node.wire.lost.Store(!node.wire.lost.Load())
			case 4:
				f.any().sweep(t.Context())
			default:
				f.take()
			}
		}
		f.check(2, f.passed)
		for _, node := range f.nodes {
			node.wire.lost.Store(false)
			node.sweep(t.Context())
		}
		since := len(f.passed)
		for range 30 {
			f.pass()
			f.take()
		}
		f.check(1, f.passed[since:])
	})
}

// Some nodes lose Redis: at most their shares pass there, and at most the limit in Redis.
func TestFleetInPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				f.pass()
			case 3:
				f.any().wire.lost.Store(true)
			default:
				f.take()
			}
		}
		for where, passed := range f.by {
			p := whole
			if node, ok := where.(*fleetNode); ok {
				p, _ = node.share()
			}
			for _, l := range f.charges[0].Limits {
				part, _ := p.limit(l)
				if got := within(part, 1, passed); got > part.Burst() {
					t.Fatalf("%d have passed at %v in a window of %v: %v", got, where, part, passed)
				}
			}
		}
	})
}

// All nodes lose Redis at any time, and one knows less of it than the other: from one window after
// that on, no more than the limit passes.
func TestFleetAfterAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		for range rapid.IntRange(0, 20).Draw(t, "steps before") {
			f.take()
			f.pass()
		}
		for _, node := range f.nodes {
			node.wire.lost.Store(true)
		}
		since := len(f.passed)
		for range rapid.IntRange(0, 40).Draw(t, "steps after") {
			f.take()
			f.pass()
		}
		f.check(1, f.passed[since:])
		f.check(2, f.passed)
	})
}
