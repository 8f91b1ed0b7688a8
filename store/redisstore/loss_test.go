package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// lostRedis is a Redis that answers resets only.
type lostRedis struct {
	*fakeConn
	closed atomic.Bool
}

func (g *lostRedis) Take(ctx context.Context, _ []store.Charge) (store.Receipt, []limit.Decision, error) {
	return nil, nil, g.why(ctx)
}

func (g *lostRedis) Peek(ctx context.Context, _ []store.Charge) ([]limit.Decision, error) {
	return nil, g.why(ctx)
}

func (g *lostRedis) Read(ctx context.Context, _ ...string) ([]*limit.Account, int64, error) {
	return nil, 0, g.why(ctx)
}

func (g *lostRedis) Keys(ctx context.Context, _ string) ([]string, error) { return nil, g.why(ctx) }

func (g *lostRedis) owe(ctx context.Context, _ store.Charge) (store.Receipt, error) {
	return nil, g.why(ctx)
}

func (g *lostRedis) Reset(ctx context.Context, _ string) error {
	if g.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (g *lostRedis) Settle(_ context.Context, r store.Receipt, _ []int64) error {
	if r == nil {
		return nil
	}
	return store.ErrReceipt
}

func (g *lostRedis) Close() error {
	g.closed.Store(true)
	return nil
}

func (g *lostRedis) why(ctx context.Context) error {
	if g.closed.Load() {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: for good", ErrLost)
}

// The only node of a fleet is a store like any other while Redis is lost.
func TestLostStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		l := newFallback(&lostRedis{fakeConn: &fakeConn{fakeRedis: newFakeRedis()}}, Share, nodesAt(whole), nil)
		l.clock = clock
		t.Cleanup(func() { l.Close() })
		return exactStore{l}
	})
}

// exactStore is a node that has every limit to itself while Redis is lost: what it says is exact, as storetest
// expects, and it is not marked as known to this node alone.
type exactStore struct{ store.Store }

func (s exactStore) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	r, decisions, err := s.Store.Take(ctx, charges)
	return r, unmarked(decisions), err
}

func (s exactStore) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	decisions, err := s.Store.Peek(ctx, charges)
	return unmarked(decisions), err
}

func unmarked(decisions []limit.Decision) []limit.Decision {
	for i := range decisions {
		decisions[i].Local = false
	}
	return decisions
}

func TestDenyPassesErrorsOn(t *testing.T) {
	f := newFleetNode(newFakeRedis(), Deny, share{}, nil)
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{limit.PerMinute(10)}, N: 1}}
	r, _ := f.take(t, "key", 1, limit.PerMinute(10))
	f.wire.lost.Store(true)
	asked := f.wire.asked.Load()
	_, _, taken := f.Take(t.Context(), charges)
	_, peeked := f.Peek(t.Context(), charges)
	_, _, read := f.Read(t.Context(), "key")
	_, listed := f.Keys(t.Context(), "")
	for name, err := range map[string]error{
		"take": taken, "peek": peeked, "read": read, "keys": listed,
		"settle": f.Settle(t.Context(), r, []int64{2}), "reset": f.Reset(t.Context(), ""),
	} {
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := f.wire.asked.Load() - asked; got != 6 {
		t.Errorf("six calls have asked %d times", got)
	}
	f.wire.lost.Store(false)
	if err := f.Settle(t.Context(), r, []int64{3}); err != nil {
		t.Error(err)
	}
	if got := f.wire.left(t, "key", limit.PerMinute(10)); got != 7 {
		t.Errorf("%d are left; want 7", got)
	}
}

// everyLimit is one limit of each kind, of 10.
var everyLimit = map[string]limit.Limit{
	"gcra":     limit.PerMinute(10),
	"token":    limit.PerMinute(10).Using(limit.TokenBucket),
	"leaky":    limit.PerMinute(10).Using(limit.LeakyBucket),
	"fixed":    limit.PerMinute(10).Using(limit.FixedWindow),
	"anchored": limit.PerMinute(10).Anchored(),
	"calendar": limit.PerDay(10).ResetAt(0, nil),
	"log":      limit.PerMinute(10).Using(limit.SlidingLog),
	"counter":  limit.PerMinute(10).Using(limit.SlidingCounter),
}

// With Allow, every call passes and is counted, and Redis is charged for it once.
func TestAllow(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Allow, share{}, nil)
			f.wire.lost.Store(true)
			for i, want := range []struct{ n, used, left int64 }{{4, 4, 6}, {4, 8, 2}, {4, 12, 0}, {100, 112, 0}} {
				r, decisions := f.take(t, "key", want.n, l)
				d := decisions[0]
				if r == nil || d.Used != want.used || d.Remaining != want.left || d.Limit != l || d.RetryAfter != 0 {
					t.Errorf("take %d is %+v; want %d used and %d left", i, d, want.used, want.left)
				}
			}
			r, _ := f.take(t, "key", 5, l)
			if err := f.Settle(t.Context(), r, []int64{6}); err != nil {
				t.Error(err)
			}
			peeked, err := f.Peek(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
			if err != nil || !peeked[0].Allowed || peeked[0].RetryAfter != 0 {
				t.Errorf("peek: %+v, %v", peeked, err)
			}
			f.wire.lost.Store(false)
			_, decisions := f.take(t, "key", 1, l)
			if decisions[0].Allowed {
				t.Errorf("Redis does not know what has passed: %+v", decisions)
			}
			if isBucket(l) && decisions[0].RetryAfter != 109*l.Period()/10 {
				t.Errorf("Redis was not charged 118, of which 109 must drain: %+v", decisions)
			}
			if got := 1000 - f.wire.left(t, "key", l.WithCount(1000)); !isBucket(l) && got != 118 {
				t.Errorf("Redis was charged %d of 118", got)
			}
		})
	}
}

// A node starts from the state of Redis, enforces its share, and reports it in decisions on the
// limit.
func TestShare(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Share, share{0, 2}, nil)
			f.take(t, "key", 4, l)
			f.wire.lost.Store(true)
			if r, decisions := f.take(t, "key", 2, l); r == nil || decisions[0].Used != 9 || decisions[0].Remaining != 1 || decisions[0].Limit != l {
				t.Errorf("2 of a part of 5, of which 2 are used: %+v", decisions)
			}
			r, decisions := f.take(t, "key", 2, l)
			if d := decisions[0]; r != nil || d.Limit != l || d.Used != 9 || d.Remaining != 1 || d.RetryAfter <= 0 || d.RetryAfter > 2*l.Period() {
				t.Errorf("2 more: %+v", d)
			}
			if _, decisions = f.take(t, "key", 6, l); decisions[0].Allowed || decisions[0].RetryAfter != l.Period() {
				t.Errorf("more than the part: %+v", decisions)
			}
			if _, decisions = f.take(t, "key", 11, l); decisions[0].Allowed || decisions[0].RetryAfter != limit.Never {
				t.Errorf("more than the limit: %+v", decisions)
			}
			if r, _ = f.take(t, "key", 0, l); r == nil {
				t.Error("nothing does not pass")
			}
			f.Settle(t.Context(), r, []int64{3})
			if _, decisions = f.take(t, "key", 0, l); decisions[0].Allowed || decisions[0].Used != 12 {
				t.Errorf("nothing, after 3 were used beyond a part of which 1 was left: %+v", decisions)
			}
			f.wire.lost.Store(false)
			if _, decisions = f.take(t, "key", 1, l); !decisions[0].Allowed || decisions[0].Used != 10 {
				t.Errorf("1 after 4, 2 and 3: %+v", decisions)
			}
			if open := f.ledgers.count.Load(); open != 0 {
				t.Errorf("%d ledgers are open", open)
			}
		})
	}
}

// An amount that only a longer window holds neither counts in a shorter one nor is charged to it.
func TestWindowsOfAKey(t *testing.T) {
	minute, hour, day := limit.PerMinute(10), limit.PerHour(100), limit.PerDay(1000)
	for name, c := range map[string]struct {
		limits []limit.Limit
		later  []int64 // what is left of each after what was charged late
	}{
		"buckets":  {[]limit.Limit{minute, hour, day}, []int64{10, 98, 996}},
		"windows":  {[]limit.Limit{minute.Using(limit.FixedWindow), hour.Using(limit.FixedWindow), day.Anchored()}, []int64{10, 94, 994}},
		"logs":     {[]limit.Limit{minute.Using(limit.SlidingLog), hour.Using(limit.SlidingLog), day.Using(limit.SlidingLog)}, []int64{7, 94, 994}},
		"counters": {[]limit.Limit{minute.Using(limit.SlidingCounter), hour.Using(limit.SlidingCounter)}, []int64{10, 94}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeRedis()
			f := newFleetNode(s, Share, share{1, 2}, nil)
			f.take(t, "key", 3, c.limits...)
			s.pass(2 * time.Minute)
			f.Peek(t.Context(), []store.Charge{{Key: "key", Limits: c.limits}})
			f.wire.lost.Store(true)
			if _, d := f.take(t, "key", 3, c.limits...); d[0].Remaining != 2 {
				t.Errorf("the minute is full, and %d are left of 5", d[0].Remaining)
			}
			s.pass(2 * time.Minute)
			f.wire.lost.Store(false)
			_, decisions := f.take(t, "key", 0, c.limits...)
			for i, d := range decisions {
				if d.Remaining != c.later[i] {
					t.Errorf("%d are left of %v; want %d", d.Remaining, d.Limit, c.later[i])
				}
			}
		})
	}
}

// If the shares of count and burst are not the same part, Redis is charged for no less than what the
// node has admitted, less what has drained.
func TestUnequalShares(t *testing.T) {
	s := newFakeRedis()
	l := limit.PerMinute(1).WithBurst(140)
	f := newFleetNode(s, Share, share{1, 2}, nil) // the other may not admit anything
	f.take(t, "key", 30, l)
	f.wire.lost.Store(true)
	f.take(t, "key", 30, l)
	s.pass(20 * time.Minute)
	f.wire.lost.Store(false)
	if _, d := f.take(t, "key", 0, l); d[0].Remaining != 100 {
		t.Errorf("%d are left of 140, after 30, 30 and twenty minutes", d[0].Remaining)
	}
}

// Limits of one shape are charged together: otherwise one would replace the other.
func TestLimitsOfOneShape(t *testing.T) {
	s := newFakeRedis()
	fast, slow := limit.PerMinute(60), limit.PerMinute(6).WithBurst(60)
	f := newFleetNode(s, Allow, share{}, nil)
	f.wire.lost.Store(true)
	f.take(t, "key", 10, fast, slow)
	s.pass(5 * time.Second)
	f.wire.lost.Store(false)
	if _, d := f.take(t, "key", 0, fast, slow); d[0].Remaining > 55 || d[1].Remaining != 50 {
		t.Errorf("10 were used five seconds ago: %+v", d)
	}
}

// A quota that changes while Redis is charged is not charged twice.
func TestCountChangesWhilePaid(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Share, whole, nil)
			f.wire.lost.Store(true)
			f.take(t, "key", 4, l)
			g := f.ledgers.find("key")
			b, _ := f.ledgers.nextBill(g, true, false)
			f.take(t, "key", 1, l.WithCount(20))
			f.ledgers.update(g, func(g *ledger) { g.markSent(b, nil, f.clock()) })
			f.ledgers.update(g, func(g *ledger) { g.bill = nil })
			if next, _ := f.ledgers.nextBill(g, true, false); b.n != 4 || next == nil || next.n != 1 {
				t.Errorf("4 and 1 are owed: %+v, %+v", b, next)
			}
		})
	}
}

// When a node learns of other nodes, or of their end, while it keeps ledgers, used amounts stay.
// A call that got no answer from Redis, which is back by the time the caller knows that, asks again. If the node decided,
// it could do so after it has announced that Redis was charged for everything, and the others count on that.
func TestBackWhileACallFails(t *testing.T) {
	perMinute := limit.PerMinute(300)
	n := newFleetNode(newFakeRedis(), Share, share{rank: 0, nodes: 3}, nil)
	n.changed(change{lost: true, err: ErrLost})
	n.wire.answering = func(string, []store.Charge) error {
		n.wire.answering = nil
		n.changed(change{})
		if !n.nodes.ready() {
			t.Error("the node is not ready, although it has decided nothing")
		}
		return fmt.Errorf("%w: no answer", ErrLost)
	}
	r, _ := n.take(t, "key", 1, perMinute)
	if _, local := r.(*localReceipt); local || n.inDebt() {
		t.Error("the node has decided itself")
	}
}

// A node is not ready while it decides on a call without Redis.
func TestNotReadyWhileDeciding(t *testing.T) {
	n := newFleetNode(newFakeRedis(), Share, share{rank: 0, nodes: 3}, nil)
	n.changed(change{lost: true, err: ErrLost})
	n.wire.lost.Store(true)
	n.lost.Store(0) // as if it were back meanwhile
	decided := false
	n.clock = func() int64 { // which a decision reads
		if n.deciding.Load() > 0 {
			decided = true
			if n.nodes.ready() {
				t.Error("the node is ready, although it decides on a call")
			}
		}
		return n.wire.now()
	}
	n.take(t, "key", 1, limit.PerMinute(300))
	if !decided {
		t.Error("the call does not count as one that is being decided")
	}
}

func TestShareChanges(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Share, share{0, 2}, nil)
			f.take(t, "key", 4, l)
			f.wire.lost.Store(true)
			f.take(t, "key", 1, l)
			f.nodes.current.Store(&whole)
			if _, d := f.take(t, "key", 2, l); d[0].Remaining != 5 {
				t.Errorf("2, 1 and 2 were used of 10: %+v", d)
			}
			f.nodes.current.Store(&share{1, 3})
			if r, d := f.take(t, "key", 1, l); r != nil {
				t.Errorf("5 were used of 3: %+v", d)
			}
			f.wire.lost.Store(false)
			if _, d := f.take(t, "key", 0, l); d[0].Remaining != 3 {
				t.Errorf("4, 1 and 2 were used of 10: %+v", d)
			}
		})
	}
}

func TestEmptyShare(t *testing.T) {
	s := newFakeRedis()
	l := limit.PerMinute(1)
	f := newFleetNode(s, Share, share{0, 2}, nil)
	f.wire.lost.Store(true)
	other := limit.PerMinute(10)
	_, decisions := f.take(t, "key", 1, l, other)
	if d := decisions[0]; d.Allowed || d.Limit != l || d.Used != l.Count() || d.Remaining != 0 || d.RetryAfter != l.Period() {
		t.Errorf("one of nothing: %+v", d)
	}
	if d := decisions[1]; !d.Allowed || d.Limit != other || d.Remaining != 5 {
		t.Errorf("the other limit: %+v", d)
	}
	if r, _ := f.take(t, "key", 0, l); r == nil {
		t.Error("nothing of nothing does not pass")
	}

	f.nodes.current.Store(nil)
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{other}, N: 1}}
	if _, _, err := f.Take(t.Context(), charges); !errors.Is(err, ErrLost) {
		t.Errorf("a node that has no place: %v", err)
	}
	if _, err := f.Peek(t.Context(), charges); !errors.Is(err, ErrLost) {
		t.Errorf("a node that has no place peeks: %v", err)
	}
}

// What Redis is charged does not depend on which of its answers get lost.
func TestChargedOnce(t *testing.T) {
	for _, mode := range []StoreLoss{Allow, Share} {
		t.Run(string(mode), func(t *testing.T) {
			l := limit.PerMinute(100).Using(limit.SlidingLog)
			f := newFleetNode(newFakeRedis(), mode, whole, nil)
			f.wire.lost.Store(true)
			f.take(t, "key", 7, l)
			f.wire.lost.Store(false)
			f.wire.mute.Store(true)
			f.take(t, "key", 2, l) // decided here: the bill was not answered
			f.sweep(t.Context())
			if f.ledgers.count.Load() != 1 {
				t.Error("the ledger is closed before Redis has answered")
			}
			f.wire.mute.Store(false)
			f.take(t, "key", 1, l)
			if got := 100 - f.wire.left(t, "key", l); got != 10 {
				t.Errorf("Redis counts %d of 10", got)
			}
			if f.ledgers.count.Load() != 0 {
				t.Error("the ledger is open")
			}
		})
	}
}

func TestReceipts(t *testing.T) {
	for _, mode := range []StoreLoss{Allow, Share} {
		for name, l := range map[string]limit.Limit{"log": limit.PerMinute(100).Using(limit.SlidingLog), "gcra": limit.PerMinute(100)} {
			t.Run(fmt.Sprint(mode, "/", name), func(t *testing.T) { testReceipts(t, mode, l) })
		}
	}
}

func testReceipts(t *testing.T, mode StoreLoss, l limit.Limit) {
	for name, c := range map[string]struct {
		takenHere, settledHere, paidBetween bool
		actual                              int64
		fails                               bool
		used                                int64
	}{
		"of Redis, while it is lost":           {settledHere: true, actual: 4, fails: true, used: 10},
		"of Redis":                             {actual: 4, used: 4},
		"of the node, for less, while lost":    {takenHere: true, settledHere: true, actual: 4, used: 4},
		"of the node, for more, while lost":    {takenHere: true, settledHere: true, actual: 14, used: 14},
		"of the node, for less, before paid":   {takenHere: true, actual: 4, used: 4},
		"of the node, for less, after paid":    {takenHere: true, paidBetween: true, actual: 4, used: 10},
		"of the node, for more, after paid":    {takenHere: true, paidBetween: true, actual: 14, used: 14},
		"of the node, paid, then lost":         {takenHere: true, paidBetween: true, settledHere: true, actual: 14, used: 14},
		"of the node, left as it is":           {takenHere: true, actual: -1, used: 10},
		"of the node, left after it was paid":  {takenHere: true, paidBetween: true, actual: -1, used: 10},
		"of the node, for nothing, while lost": {takenHere: true, settledHere: true, actual: 0, used: 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), mode, whole, nil)
			f.wire.lost.Store(c.takenHere)
			r, _ := f.take(t, "key", 10, l)
			if c.paidBetween {
				f.wire.lost.Store(false)
				f.sweep(t.Context())
			}
			f.wire.lost.Store(c.settledHere)
			if err := f.Settle(t.Context(), r, []int64{c.actual}); errors.Is(err, ErrLost) != c.fails {
				t.Fatal(err)
			}
			if err := f.Settle(t.Context(), r, []int64{50}); errors.Is(err, ErrLost) != c.fails {
				t.Fatalf("again: %v", err)
			}
			f.wire.lost.Store(false)
			f.sweep(t.Context())
			if got := 100 - f.wire.left(t, "key", l); got != c.used {
				t.Errorf("Redis counts %d; want %d", got, c.used)
			}
			if c.fails {
				if err := f.Settle(t.Context(), r, []int64{c.actual}); err != nil {
					t.Fatal(err)
				}
				if got := 100 - f.wire.left(t, "key", l); got != c.actual {
					t.Errorf("Redis counts %d after all; want %d", got, c.actual)
				}
			}
		})
	}
}

func TestForeignLocalReceipts(t *testing.T) {
	l := limit.PerMinute(10)
	a, b := newFleetNode(newFakeRedis(), Share, whole, nil), newFleetNode(newFakeRedis(), Share, whole, nil)
	a.wire.lost.Store(true)
	r, _ := a.take(t, "key", 1, l)
	for name, err := range map[string]error{
		"another store":    b.Settle(t.Context(), r, []int64{1}),
		"too many amounts": a.Settle(t.Context(), r, []int64{1, 2}),
		"no receipt":       a.Settle(t.Context(), "receipt", []int64{1}),
	} {
		if !errors.Is(err, store.ErrReceipt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If only some keys are lost, the node decides only on calls that need them.
func TestSomeKeys(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.SlidingLog)
	f := newFleetNode(newFakeRedis(), Share, share{0, 2}, nil)
	prefix := "lost"
	f.wire.without.Store(&prefix)
	charges := func(n int64, keys ...string) (all []store.Charge) {
		for _, key := range keys {
			all = append(all, store.Charge{Key: key, Limits: []limit.Limit{l}, N: n})
		}
		return all
	}
	take := func(want bool, n int64, keys ...string) {
		t.Helper()
		r, decisions, err := f.Take(t.Context(), charges(n, keys...))
		if err != nil || (r != nil) != want {
			t.Fatalf("%+v, %v", decisions, err)
		}
	}
	take(true, 6, "there")          // by Redis
	take(true, 2, "lost", "there")  // by the shares: 5, and 5 of which 3 are used
	take(false, 1, "lost", "there") // nothing is left of the second
	take(true, 3, "lost")           // the denial took nothing of the first
	take(true, 2, "there")          // by Redis, which was charged 2 before
	if got := f.wire.left(t, "there", l); got != 0 {
		t.Errorf("%d are left", got)
	}
	f.wire.without.Store(nil)
	take(true, 5, "lost")
	if got := f.wire.left(t, "lost", l); got != 0 {
		t.Errorf("%d are left of what was lost", got)
	}
}

func TestReadWhileLost(t *testing.T) {
	log, fixed := limit.PerMinute(10).Using(limit.SlidingLog), limit.PerHour(20).Using(limit.FixedWindow)
	s := newFakeRedis()
	f := newFleetNode(s, Share, share{0, 2}, nil)
	f.take(t, "a/heard", 4, log, fixed)
	f.take(t, "b/other", 1, log, fixed)
	f.wire.lost.Store(true)
	f.take(t, "a/taken", 3, log, fixed)

	accounts, at, err := f.Read(t.Context(), "a/heard", "a/taken", "a/none")
	if err != nil || at != s.now() {
		t.Fatal(err)
	}
	for i, want := range []int64{2, 3, 0} {
		for _, l := range []limit.Limit{log, fixed} {
			if got := accounts[i].Check(l, at, 0).Used; got != want {
				t.Errorf("key %d: %d of %v are used; want %d", i, got, l, want)
			}
		}
	}
	if keys, err := f.Keys(t.Context(), "a/"); err != nil || !slices.Equal(keys, []string{"a/heard", "a/taken"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	peek := func(key string, l limit.Limit) limit.Decision {
		t.Helper()
		decisions, err := f.Peek(t.Context(), []store.Charge{{Key: key, Limits: []limit.Limit{l}, N: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return decisions[0]
	}
	if d := peek("a/taken", log); !d.Allowed || d.Remaining != 2 || d.Limit != log {
		t.Errorf("peek: %+v", d)
	}
	peek("a/taken", fixed.WithCount(2)) // under another count, which changes nothing
	if err := f.Reset(t.Context(), "a/"); !errors.Is(err, ErrLost) {
		t.Errorf("reset: %v", err)
	}
	if d := peek("a/taken", log); d.Remaining != 5 {
		t.Errorf("after a reset: %+v", d)
	}
	if keys, err := f.Keys(t.Context(), ""); err != nil || !slices.Equal(keys, []string{"b/other"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	f.wire.lost.Store(false)
	f.sweep(t.Context())
	if got := f.wire.left(t, "a/taken", log); got != 10 {
		t.Errorf("Redis was charged what was reset: %d are left", got)
	}
}

// Read and Peek charge Redis first, so that their answers include what this node has admitted.
func TestReadAfterReturn(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.SlidingLog)
	f := newFleetNode(newFakeRedis(), Share, whole, nil)
	f.wire.lost.Store(true)
	f.take(t, "read", 3, l)
	f.take(t, "peeked", 4, l)
	f.wire.lost.Store(false)
	accounts, at, err := f.Read(t.Context(), "read")
	if err != nil {
		t.Fatal(err)
	}
	if used := accounts[0].Check(l, at, 0).Used; used != 3 {
		t.Errorf("%d are used; want 3", used)
	}
	decisions, err := f.Peek(t.Context(), []store.Charge{{Key: "peeked", Limits: []limit.Limit{l}}})
	if err != nil || decisions[0].Remaining != 6 {
		t.Errorf("%+v, %v", decisions, err)
	}
}

func TestBadCallsWhileLost(t *testing.T) {
	f := newFleetNode(newFakeRedis(), Allow, share{}, nil)
	f.wire.lost.Store(true)
	if _, _, err := f.Take(t.Context(), []store.Charge{{Key: "key", N: -1}}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("less than nothing: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{limit.PerMinute(10)}, N: 1}}
	if r, _, err := f.Take(ended, charges); r != nil || err == nil {
		t.Errorf("a context that has ended: %v, %v", r, err)
	}
	if n := f.ledgers.count.Load(); n != 0 {
		t.Errorf("%d ledgers are open", n)
	}
}

// However many callers take while Redis comes and goes, it is charged exactly for what has passed.
func TestNothingIsForgotten(t *testing.T) {
	for _, mode := range []StoreLoss{Allow, Share} {
		t.Run(string(mode), func(t *testing.T) {
			limits := []limit.Limit{limit.PerHour(1 << 40).Using(limit.SlidingLog), limit.PerDay(1 << 40).Using(limit.FixedWindow)}
			f := newFleetNode(newFakeRedis(), mode, whole, nil)
			f.sweeper.closed = false
			var passed [3]atomic.Int64
			var all sync.WaitGroup
			for worker := range 8 {
				all.Go(func() {
					for i := range 300 {
						if worker == 0 {
							f.wire.lost.Store(i%2 == 0)
							f.wire.mute.Store(i%3 == 0)
						}
						first, second := (i+worker)%3, (i+worker+1+i%2)%3
						n := int64(1 + i%5)
						r, _, err := f.Take(t.Context(), []store.Charge{
							{Key: fmt.Sprint(first), Limits: limits, N: n}, {Key: fmt.Sprint(second), Limits: limits, N: n},
						})
						if err != nil {
							t.Error(err)
							return
						}
						more := n + int64(i%2)
						passed[first].Add(n)
						passed[second].Add(n)
						if _, here := r.(*localReceipt); here {
							if err := f.Settle(t.Context(), r, []int64{more, -1}); err != nil {
								t.Error(err)
							}
							passed[first].Add(more - n)
						}
					}
				})
			}
			all.Wait()
			f.wire.lost.Store(false)
			f.wire.mute.Store(false)
			f.Close()
			for i := range passed {
				for _, l := range limits {
					if got := l.Count() - f.wire.left(t, fmt.Sprint(i), l); got != passed[i].Load() {
						t.Errorf("Redis counts %d of key %d; %d have passed", got, i, passed[i].Load())
					}
				}
			}
			if open := f.ledgers.count.Load(); open != 0 {
				t.Errorf("%d ledgers are open", open)
			}
		})
	}
}

// When the link reports that Redis is back, or Redis answers anything, keys that no call asks for
// are paid too.
func TestPaidInTheBackground(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.SlidingLog)
	for name, back := range map[string]func(t *testing.T, f *fleetNode){
		"told":  func(_ *testing.T, f *fleetNode) { f.changed(change{}) },
		"asked": func(t *testing.T, f *fleetNode) { f.take(t, "another", 1, l) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleetNode(newFakeRedis(), Share, share{0, 2}, nil)
				f.sweeper.closed = false
				f.wire.lost.Store(true)
				for i := range 100 {
					f.take(t, fmt.Sprint("key", i), 3, l)
				}
				f.wire.lost.Store(false)
				back(t, f)
				synctest.Wait()
				for i := range 100 {
					if got := f.wire.left(t, fmt.Sprint("key", i), l); got != 7 {
						t.Fatalf("%d are left of key %d", got, i)
					}
				}
				f.wire.lost.Store(true)
				if _, d := f.take(t, "key0", 3, l); d[0].Remaining != 0 {
					t.Errorf("the next loss does not go on where Redis was: %+v", d)
				}
			})
		})
	}
}

// Debts that arise while a sweep runs are swept too.
func TestSweptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.PerMinute(10).Using(limit.SlidingLog)
		f := newFleetNode(newFakeRedis(), Allow, share{}, nil)
		f.sweeper.closed = false
		f.wire.lost.Store(true)
		f.take(t, "early", 1, l)
		f.wire.lost.Store(false)
		asked := f.wire.asked.Load()
		f.wire.mu.Lock()
		f.changed(change{})
		for f.wire.asked.Load() == asked {
			runtime.Gosched() // until the sweep has asked, and is not answered
		}
		f.wire.lost.Store(true)
		f.take(t, "late", 1, l)
		f.wire.lost.Store(false)
		f.changed(change{})
		f.wire.mu.Unlock()
		synctest.Wait()
		if open := f.ledgers.count.Load(); open != 0 {
			t.Errorf("%d ledgers are open", open)
		}
	})
}

// Ledgers that are full again are forgotten.
func TestLedgersAreForgotten(t *testing.T) {
	s := newFakeRedis()
	f := newFleetNode(s, Share, whole, nil)
	f.wire.lost.Store(true)
	for i := range 20_000 {
		f.take(t, fmt.Sprint(i), 1, limit.PerSecond(1))
		s.pass(10 * time.Millisecond)
	}
	if open := f.ledgers.count.Load(); open > 1000 {
		t.Errorf("%d ledgers are open, and 100 in use", open)
	}
}

func TestStoreLossValidate(t *testing.T) {
	for mode, fine := range map[StoreLoss]bool{"": true, Deny: true, Allow: true, Share: true, "Deny": false, "none": false} {
		if err := mode.Validate(); (err == nil) != fine {
			t.Errorf("%q: %v", mode, err)
		}
	}
}
