package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

var errLost = errors.New("the store is lost")

// losable is a store in memory that is lost on demand. The engine does not know that it is in memory.
type losable struct {
	store.Store
	mu      sync.Mutex // guards the next two
	lost    error      // nil: it is not
	settles int        // settlements that were made
}

// lose lets the store be lost, or found if err is nil.
func (s *losable) lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

func (s *losable) isLost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *losable) Local() bool { return true }

func (s *losable) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := s.isLost(); err != nil {
		return nil, nil, err
	}
	return s.Store.Take(ctx, charges)
}

func (s *losable) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := s.isLost(); err != nil {
		return nil, err
	}
	return s.Store.Peek(ctx, charges)
}

func (s *losable) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return s.lost
	}
	s.settles++
	return s.Store.Settle(ctx, r, actual)
}

// losing runs a test on a store that can be lost.
func losing(t *testing.T, test func(t *testing.T, b *bench, s *losable)) {
	synctest.Test(t, func(t *testing.T) {
		s := &losable{Store: store.NewMemory()}
		test(t, newBench(t, s), s)
	})
}

// remote is a store that can be lost and is on another machine.
type remote struct{ *losable }

func (remote) Local() bool { return false }

// Corrections that a remote store could not make are made before it is asked again: a look finds them made, too.
func TestALookMakesCorrections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &losable{Store: store.NewMemory()}
		b := newBench(t, remote{s})
		p := b.own("p", perMinute(engine.AllTokens, 100))
		res := b.take(callOf("", 80), p)
		s.lose(errLost)
		res.Commit(llm.Tokens{Input: 10, Output: 20})
		var looked engine.Result
		if err := b.Look(t.Context(), callOf("", 70), engine.Scopes{p}, &looked); !errors.Is(err, errLost) {
			t.Errorf("a look while the store is lost: %v", err)
		}
		s.lose(nil)
		if err := b.Look(t.Context(), callOf("", 70), engine.Scopes{p}, &looked); err != nil || !looked.Allowed() || s.settles != 1 {
			t.Errorf("%v, allowed: %t, %d corrections", err, looked.Allowed(), s.settles)
		}
	})
}

// Corrections that cannot be made are made before the next call is decided on.
func TestCorrectionsAreOwed(t *testing.T) {
	losing(t, func(t *testing.T, b *bench, s *losable) {
		p := b.own("p", perMinute(engine.AllTokens, 100))
		first, second := b.take(callOf("first", 40), p), b.take(callOf("second", 40), p)
		s.lose(errLost)
		first.Cancel()
		second.Commit(llm.Tokens{Input: 10, Output: 20})
		var r engine.Result
		if err := b.Try(t.Context(), callOf("lost", 70), engine.Scopes{p}, &r); !errors.Is(err, errLost) || r.Allowed() || r.Reservation != nil {
			t.Errorf("a call while the store is lost: %v, allowed %t", err, r.Allowed())
		}
		if len(b.errs) != 2 || !errors.Is(b.errs[0], errLost) {
			t.Errorf("OnError was told %v", b.errs)
		}
		s.lose(nil)
		b.take(callOf("third", 70), p)
		b.wantUsed(p, 100)
		if s.settles != 2 {
			t.Errorf("%d corrections were made; want each once", s.settles)
		}
		b.wantEvents("first", event.Admitted, event.Cancelled)
		b.wantEvents("lost", event.Lost)
	})
}

// Close makes the corrections that are owed. Those that fail for ever are not tried again.
func TestCloseMakesCorrections(t *testing.T) {
	for _, tt := range []struct {
		lost error
		want int
	}{{errLost, 1}, {store.ErrClosed, 0}, {limit.ErrCorrupt, 0}} {
		losing(t, func(t *testing.T, b *bench, s *losable) {
			p := b.own("p", perMinute(engine.AllTokens, 100))
			res := b.take(callOf("", 40), p)
			s.lose(tt.lost)
			res.Cancel()
			s.lose(nil)
			if err := b.Close(); s.settles != tt.want || !errors.Is(err, tt.lost) {
				t.Errorf("%v: Close makes %d corrections, and returns %v", tt.lost, s.settles, err)
			}
		})
	}
}

// A call keeps its slot for longer than a lease, also if the store is lost meanwhile, and gives it
// back when it ends.
func TestKeepRenewsSlots(t *testing.T) {
	losing(t, func(t *testing.T, b *bench, s *losable) {
		m, p := b.shared("m", nil, atATime(1)), b.own("p", atATime(1), perMinute(engine.Requests, 5))
		res := b.take(callOf("kept", 0), m, p)
		res.Keep()
		res.Keep()
		for range 5 {
			time.Sleep(engine.Lease - time.Second)
			b.wantDenied(callOf("denied", 0), "slots", time.Second, m, p)
		}
		s.lose(errLost)
		time.Sleep(engine.Lease - 30*time.Second) // the slot would be renewed meanwhile
		s.lose(nil)
		time.Sleep(2 * time.Second) // it is renewed when the store can be asked
		for range 2 {
			b.wantDenied(callOf("denied", 0), "slots", time.Second, m, p)
			time.Sleep(engine.Lease - time.Second)
		}
		res.Commit(llm.Tokens{Input: -1, Output: -1})
		b.wantUsed(m, 0)
		b.wantUsed(p, 0, 0)
		time.Sleep(3 * engine.Lease)
		b.wantUsed(m, 0)
	})
	everyStore(t, func(t *testing.T, b *bench) {
		m := b.shared("m", nil, atATime(1))
		kept := b.take(callOf("kept", 0), m)
		kept.Keep()
		time.Sleep(2*engine.Lease - 15*time.Second) // just after the second renewal, which has given back the first
		b.wantUsed(m, 1)
		time.Sleep(engine.Lease)
		b.wantUsed(m, 1)
		waits := b.acquire(callOf("waits", 0), m)
		kept.Cancel()
		if !waits.passed() {
			t.Errorf("the slot was given back, and a call waits: %v", waits.err)
		}
		time.Sleep(engine.Lease) // it is not kept
		b.wantUsed(m, 0)
	})
}
