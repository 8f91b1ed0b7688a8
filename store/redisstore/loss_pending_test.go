package redisstore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

var errNoAnswer = fmt.Errorf("%w: no answer", ErrLost)

// delayedTake is a take that Redis has decided, and whose answer is under way.
type delayedTake struct {
	answer  chan error // nil, or the error with which it gets lost
	granted chan bool
}

// hold lets a node take n of a key, and holds the answer back.
func (f *fleetNode) hold(t *testing.T, n int64, l limit.Limit) *delayedTake {
	t.Helper()
	h := &delayedTake{make(chan error), make(chan bool)}
	decided := make(chan struct{})
	f.wire.answering = func(string, []store.Charge) error {
		f.wire.answering = nil
		close(decided)
		return <-h.answer
	}
	go func() {
		r, _, err := f.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}})
		if err != nil {
			t.Error(err)
		}
		h.granted <- r != nil
	}()
	<-decided
	return h
}

// ends lets the answer arrive, or get lost, and returns whether the take has passed.
func (h *delayedTake) ends(err error) bool {
	h.answer <- err
	return <-h.granted
}

// rest takes one at a time until it is denied, and returns how many have passed.
func (f *fleetNode) rest(t *testing.T, l limit.Limit) (n int64) {
	t.Helper()
	for {
		if r, _ := f.take(t, "key", 1, l); r == nil {
			return n
		}
		n++
	}
}

// A node that begins to decide by itself counts takes that Redis has granted and whose answers it does
// not have yet. A regression: they passed in addition to the limit.
func TestAnswerUnderWayCounts(t *testing.T) {
	for name, l := range everyLimit {
		for why, c := range map[string]struct {
			lost error
			owed int64
		}{"heard later": {nil, 5}, "never heard": {errNoAnswer, 5 + 3}} {
			t.Run(name+"/"+why, func(t *testing.T) {
				f := newFleetNode(newFakeRedis(), Share, whole, nil)
				f.take(t, "key", 2, l)
				h := f.hold(t, 3, l)
				f.wire.lost.Store(true)
				if d, _ := f.Peek(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 6}}); d[0].Allowed {
					t.Errorf("there is room for 6 beside 2 and 3: %+v", d)
				}
				if got := f.rest(t, l); got != 5 {
					t.Errorf("%d have passed beside 2 and 3, of 10", got)
				}
				if !h.ends(c.lost) {
					t.Error("what was held back for it is not there")
				}
				if got := f.rest(t, l); got != 0 {
					t.Errorf("%d more have passed", got)
				}
				if b, _ := f.ledgers.nextBill(f.ledgers.find("key"), false, false); b.n != c.owed {
					t.Errorf("Redis is owed %d; want %d", b.n, c.owed)
				}
				f.wire.lost.Store(false)
				if got := f.rest(t, l); got != 0 {
					t.Errorf("%d more have passed once Redis was back", got)
				}
			})
		}
	}
}

// A take that Redis denies takes nothing from the node's share.
func TestDenialUnderWay(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.FixedWindow)
	f := newFleetNode(newFakeRedis(), Share, whole, nil)
	f.take(t, "key", 2, l)
	h := f.hold(t, 9, l)
	f.wire.lost.Store(true)
	if r, d := f.take(t, "key", 1, l); r != nil {
		t.Errorf("1 has passed beside 2 and perhaps 9: %+v", d)
	}
	if h.ends(nil) {
		t.Error("9 have passed beside 2")
	}
	if got := f.rest(t, l); got != 8 {
		t.Errorf("%d have passed; want 8", got)
	}
}

// An answer that is recorded after a newer one does not replace it. A regression: what had been granted
// between the two passed again.
func TestOlderAnswerIsHeardLater(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Share, whole, nil)
			h := f.hold(t, 1, l)
			f.take(t, "key", 4, l)
			h.ends(nil)
			f.wire.lost.Store(true)
			if got := f.rest(t, l); got != 5 {
				t.Errorf("%d have passed beside 1 and 4, of 10", got)
			}
		})
	}
}

// Where the order of two answers is unknown, the larger usage counts. It disappears even if some
// call is always under way.
func TestLargerAnswerGoes(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.FixedWindow)
	f := newFleetNode(newFakeRedis(), Share, whole, nil)
	one := f.hold(t, 1, l)
	r, _ := f.take(t, "key", 6, l)
	if err := f.Settle(t.Context(), r, []int64{0}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{7, 7, 7, 4, 5, 6} { // as before the refund, then the real usage
		next := f.hold(t, 1, l)
		one.ends(nil)
		if got := f.ledgers.observed.at("key", f.clock()).used(0); got != want {
			t.Errorf("%d are used after answer %d; want %d", got, i, want)
		}
		one = next
	}
	one.ends(nil)
}

// In a window that has just begun, usage of the one before does not count.
func TestLargerAnswerOfAnotherWindow(t *testing.T) {
	l := limit.PerMinute(10).Using(limit.FixedWindow)
	s := newFakeRedis()
	f := newFleetNode(s, Share, whole, nil)
	s.pass(l.Period() - 1)
	h := f.hold(t, 9, l)
	s.pass(1)
	f.take(t, "key", 1, l)
	h.ends(nil) // as of the new window, which is later than it was
	f.wire.lost.Store(true)
	if got := f.rest(t, l); got != 9 {
		t.Errorf("%d have passed beside 1, of 10", got)
	}
}

// Redis is charged for what has passed without it, and is lost again before the node knows the
// resulting state of the key. A regression: then as much passed again.
func TestLostAgainOncePaid(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			f := newFleetNode(newFakeRedis(), Share, whole, nil)
			f.wire.lost.Store(true)
			f.take(t, "key", 4, l)
			f.wire.lost.Store(false)
			f.wire.answering = func(step string, _ []store.Charge) error {
				f.wire.lost.Store(step == "settle")
				return nil
			}
			if got := f.rest(t, l); got != 6 {
				t.Errorf("%d have passed beside 4, of 10", got)
			}
		})
	}
}

// Redis is lost and found from call to call, before it decides or before it answers, while many
// callers ask: never more than the limit passes.
func TestManyAskWhileLostAndFound(t *testing.T) {
	for name, l := range everyLimit {
		t.Run(name, func(t *testing.T) {
			for round := range 100 {
				f := newFleetNode(newFakeRedis(), Share, whole, nil)
				f.wire.answering = func(string, []store.Charge) error {
					f.wire.lost.Store(rand.IntN(4) == 0)
					if rand.IntN(8) == 0 {
						return errNoAnswer
					}
					return nil
				}
				if got := f.many(t, l); got > 10 {
					t.Fatalf("%d have passed, of 10, in round %d", got, round)
				}
			}
		})
	}
}

// many lets 8 goroutines take three times each, finds Redis again now and then, and returns how
// many have passed.
func (f *fleetNode) many(t *testing.T, l limit.Limit) int64 {
	var passed atomic.Int64
	var tasks sync.WaitGroup
	for range 8 {
		tasks.Go(func() {
			for range 3 {
				if r, _ := f.take(t, "key", 1, l); r != nil {
					passed.Add(1)
				}
				if rand.IntN(4) == 0 {
					f.wire.lost.Store(false)
				}
			}
		})
	}
	tasks.Wait()
	return passed.Load()
}
