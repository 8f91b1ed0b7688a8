package redisstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// busyFleet is some nodes on one real server, whose callers take one of a limit again and again.
type busyFleet struct {
	t      testing.TB
	nodes  []*Store
	lost   []atomic.Int64 // how often each node has lost the server
	back   []atomic.Int64
	limit  limit.Limit
	passed atomic.Int64
	turns  []atomic.Int64 // how many calls of each node have ended
}

func newBusyFleet(t testing.TB, server *redistest.Server, n int, mode StoreLoss) *busyFleet {
	t.Helper()
	f := &busyFleet{
		t: t, limit: limit.PerHour(300).Using(limit.SlidingLog),
		lost: make([]atomic.Int64, n), back: make([]atomic.Int64, n), turns: make([]atomic.Int64, n),
	}
	for i := range n {
		// A machine that is busy for a moment is no loss: nodes would admit again what they do not know of yet.
		s, err := New(Config{URL: server.URL(), OnStoreLoss: mode, Timeout: 2 * time.Second, OnEvent: func(e store.Event) {
			switch e.Kind {
			case store.Lost:
				f.lost[i].Add(1)
			case store.Back:
				f.back[i].Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		f.nodes = append(f.nodes, s)
	}
	for _, s := range f.nodes {
		if others := s.top.(*fallback).nodes; others != nil {
			others.announceOnce(t.Context())
		}
	}
	return f
}

// run lets callers of all nodes take until stop returns.
func (f *busyFleet) run() (stop func()) {
	var done atomic.Bool
	var wg sync.WaitGroup
	for i, s := range f.nodes {
		for range 2 {
			wg.Go(func() {
				for !done.Load() {
					r, _, err := s.Take(f.t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{f.limit}, N: 1}})
					if err == nil && r != nil {
						f.passed.Add(1)
					}
					f.turns[i].Add(1)
					time.Sleep(time.Millisecond) // leaves the machine to others
				}
			})
		}
	}
	return func() {
		done.Store(true)
		wg.Wait()
	}
}

// until waits for a condition.
func (f *busyFleet) until(what string, so func() bool) {
	f.t.Helper()
	for late := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			f.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// all reports whether a condition holds for every node.
func (f *busyFleet) all(so func(i int) bool) bool {
	for i := range f.nodes {
		if !so(i) {
			return false
		}
	}
	return true
}

// turn waits until every node has finished some more calls.
func (f *busyFleet) turn(n int64) {
	f.t.Helper()
	before := make([]int64, len(f.nodes))
	for i := range before {
		before[i] = f.turns[i].Load()
	}
	f.until("more calls", func() bool { return f.all(func(i int) bool { return f.turns[i].Load() > before[i]+n }) })
}

// A server that is paused for a moment, and then goes on, admits no more than the limit, although the
// nodes notice it one after another, and have admitted their shares meanwhile.
func TestPausedServer(t *testing.T) {
	server := redistest.New(t)
	f := newBusyFleet(t, server, 3, Share)
	mustTake(t, f.nodes[0], one("key", f.limit, 60))
	f.passed.Add(60)
	f.until("all nodes know of the 60", func() bool { // what a node does not know of when the server is lost may pass once more
		return f.all(func(i int) bool {
			decisions, err := f.nodes[i].Peek(t.Context(), one("key", f.limit, 0))
			return err == nil && decisions[0].Remaining == 240
		})
	})
	server.Pause()
	stop := f.run()
	f.until("the loss", func() bool { return f.all(func(i int) bool { return f.lost[i].Load() > f.back[i].Load() }) })
	f.turn(100)
	server.Resume()
	f.until("the recovery", func() bool {
		return f.all(func(i int) bool {
			return f.lost[i].Load() == f.back[i].Load() && !f.nodes[i].top.(*fallback).nodes.recovery.underWay()
		})
	})
	f.turn(100)
	stop()
	if n := f.passed.Load(); n > 300 || n < 270 {
		t.Errorf("%d of 300 have passed", n)
	}
}

// A node waits for every other node that it knew: for one that is not ready, and for one whose
// announcement was under way since before the loss.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		r := &recovery{ended: func() { ended++ }}
		now := int64(1000)
		observe := func(wantOver bool, others ...announced) {
			t.Helper()
			now++
			all := append(slices.Clone(others), announced{id: "self", at: now, ready: true})
			if over := r.observe("self", all, r.attempt()); over != wantOver {
				t.Fatalf("it is over: %v", over)
			}
		}
		a, b := announced{id: "a", at: 1, ready: true}, announced{id: "b", at: 1, ready: true}
		observe(true, a, b)

		r.begin(3)
		if !r.of(3) || r.of(2) {
			t.Fatal("another group is lost")
		}
		late := r.attempt()
		observe(false, a, b) // it is not back
		r.back(time.Now().Add(10 * time.Second))
		if r.observe("self", []announced{{id: "self", at: now, ready: true}}, late) || r.since != 0 {
			t.Fatal("an announcement from before counts")
		}
		observe(false, a, b)
		a.at, b.at = now, now+5 // a's is not later than this node's first
		observe(false, a, b)
		a.at, a.ready = now+5, false
		observe(false, a, b)
		observe(false) // the set has expired, and nobody else is there yet
		a.ready = true
		observe(true, a)
		if ended != 1 || r.underWay() {
			t.Fatalf("it ended %d times", ended)
		}

		observe(true, a, b)
		r.begin(0)
		r.back(time.Now().Add(10 * time.Second))
		observe(false)
		time.Sleep(11 * time.Second)
		observe(true) // nobody else came
		r.begin(0)
		r.back(time.Now().Add(10 * time.Second))
		if r.underWay() || ended != 3 {
			t.Error("a node that is alone waits")
		}
	})
}

// Nodes reach the server again one after another. The first of them finds little used there, and admits
// nothing beyond its own share until the others have charged theirs.
func TestNodesReturnOneAfterAnother(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	l := limit.PerHour(300).Using(limit.SlidingLog)
	var all []*cutNode
	for range 3 {
		all = append(all, newCutNode(t, server, Share))
	}
	for _, c := range all {
		c.fallback().nodes.announceOnce(t.Context())
	}
	for _, c := range all {
		c.proxy.Cut()
	}
	for i, c := range all {
		if n := c.all(t, l); n != 100 {
			t.Fatalf("%d passed at node %d; want its share of 100", n, i)
		}
	}
	for i, c := range all {
		c.proxy.Heal()
		c.await(t, store.Back)
		r := &c.fallback().nodes.recovery
		r.mu.Lock()
		r.until = time.Now().Add(time.Hour) // however slow this machine is
		r.mu.Unlock()
		c.await(t, store.Reconciled)
		if n := c.all(t, l); n != 0 {
			t.Errorf("%d more passed at node %d", n, i)
		}
		decisions, err := c.Peek(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
		if err != nil || store.Allowed(decisions) {
			t.Errorf("a peek at node %d: %+v, %v", i, decisions, err)
		}
	}
	for _, c := range all {
		c.awaitRecovery(t)
		b := c.fallback().ledgers
		b.mu.Lock()
		if len(b.kept) > 0 {
			t.Errorf("%d ledgers are kept", len(b.kept))
		}
		b.mu.Unlock()
	}
	if err := all[0].Reset(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n := all[1].all(t, l); n != 300 { // the whole limit, as Redis decides again
		t.Errorf("%d passed at one node; want 300", n)
	}
}

// What Redis denies in a recovery is given back to the node's share, and what it grants counts there.
func TestShareInRecovery(t *testing.T) {
	s := newFakeRedis()
	f := newFleetNode(s, Share, share{0, 2}, nil)
	l := limit.PerHour(10).Using(limit.SlidingLog)
	f.nodes.recovery.known = []string{"other"}
	f.nodes.again = make(chan struct{}, 1)
	f.changed(change{lost: true})
	f.changed(change{})
	for i := range 5 {
		if r, _ := f.take(t, "key", 1, l); r == nil {
			t.Fatalf("take %d of the share of 5 was denied", i)
		}
	}
	if r, decisions := f.take(t, "key", 1, l); r != nil || decisions[0].Limit != l {
		t.Fatalf("%+v passed beyond the share", decisions)
	}
	other := newFleetNode(s, Share, share{1, 2}, nil)
	other.take(t, "shared", 8, l)
	if r, _ := f.take(t, "shared", 3, l); r != nil {
		t.Fatal("what Redis denies has passed")
	}
	if r, _ := f.take(t, "shared", 2, l); r == nil {
		t.Error("what Redis has denied was not given back")
	}
	if f.inDebt() {
		t.Error("what Redis has granted is owed")
	}
}
