package redisstore

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/internal/bookstest"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// A store whose settlements nobody waits for keeps the promises of a store.
func TestSettleLaterIsSettle(t *testing.T) {
	open := newBookStores(dialed(t, redistest.New(t).URL()))
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		testkit.OneIn(t, 3)
		return bookstest.Later(open(t, clock, 100)())
	})
}

// Every call that comes after a settlement that nobody waits for finds it settled, however many there are, and each is
// made once. Close makes those that are left.
func TestSettleLater(t *testing.T) {
	url := redistest.New(t).URL()
	s := opened(t, url, Config{Timeout: patient})
	l := limit.PerDay(1 << 30).Using(limit.SlidingLog)
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 10}}
	take := func() store.Receipt {
		r, said, err := s.Take(t.Context(), charges)
		if err != nil || r == nil {
			t.Fatal(said, err)
		}
		return r
	}
	var done atomic.Int64
	settle := func(r store.Receipt) {
		e := books.Entry{Owner: books.Owner{Project: "acme", Model: "m"}, Amounts: books.Amounts{books.Requests: 1}}
		inside(s).SettleLater(r, []int64{1}, &e, func(err error) {
			done.Add(1)
			if err != nil {
				t.Error(err)
			}
		})
	}
	const calls = 200
	for i := range int64(calls) {
		r := take()
		settle(r)
		if i%10 == 0 {
			settle(r) // is not the first
		}
		said, err := s.Peek(t.Context(), charges)
		if err != nil || said[0].Used != i+1 {
			t.Fatalf("%d are used after %d calls of one, %v", said[0].Used, i+1, err)
		}
	}
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if err != nil || sum.Total[books.Requests] != calls {
		t.Errorf("%d calls are booked, %v; want %d", sum.Total[books.Requests], err, calls)
	}
	unsettled := take()
	settle(take())
	if err := s.Close(); err != nil || done.Load() != calls+calls/10+1 {
		t.Errorf("%d settlements were told of, %v", done.Load(), err)
	}
	other := opened(t, url, Config{Timeout: patient})
	if said, err := other.Peek(t.Context(), charges); err != nil || said[0].Used != calls+1+10 {
		t.Errorf("%d are used in the end, %v; want %d", said[0].Used, err, calls+1+10)
	}
	inside(s).SettleLater(unsettled, []int64{1}, nil, func(err error) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("closed: %v; want %v", err, store.ErrClosed)
		}
	})
	inside(s).AwaitSettled()
}

// A reset and a list of keys, which do not go through the queue, come after the settlements that nobody waits for.
func TestSettleLaterBeforeAReset(t *testing.T) {
	s := opened(t, redistest.New(t).URL(), Config{Timeout: patient})
	s.books.link.later.hold = time.Hour
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{limit.PerDay(100).Using(limit.SlidingLog)}}}
	owe := func() {
		r, _, err := s.Take(t.Context(), charges)
		if err != nil {
			t.Fatal(err)
		}
		s.books.link.running.Wait() // until its queue has nothing to send
		inside(s).SettleLater(r, []int64{10}, nil, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	owe()
	if keys, err := s.Keys(t.Context(), ""); err != nil || len(keys) != 1 {
		t.Errorf("the keys are %q, %v", keys, err)
	}
	owe()
	if err := s.Reset(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if said, err := s.Peek(t.Context(), charges); err != nil || said[0].Used != 0 {
		t.Errorf("%d are used after a reset, %v", said[0].Used, err)
	}
}

// A settlement leaves by itself when it is itself old enough, not when the timer of an earlier one runs out.
func TestSettleLaterWaitsForItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(nil, linkConfig{})
		q := &l.queues[0]
		left := func() bool {
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(q.ops) == 0
		}
		hold := func() {
			if err := l.enqueue(&op{state: opFinished}, true); err != nil { // needs no server
				t.Fatal(err)
			}
		}
		hold()
		time.Sleep(maxLater * 3 / 4)
		l.release(q, 0) // as a take would
		if !left() {
			t.Error("the first is held")
		}
		hold()
		time.Sleep(maxLater / 2)
		if left() {
			t.Error("the second left in the first one's time")
		}
		time.Sleep(maxLater / 2)
		if !left() {
			t.Error("the second is held beyond its time")
		}
	})
}

// A settlement and the take after it are one call of the script.
func TestSettleLaterSharesABatch(t *testing.T) {
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: patient})
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{limit.PerDay(1 << 30).Using(limit.SlidingLog)}, N: 10}}
	link := s.books.link
	link.later.hold = time.Hour
	batches := func() uint64 {
		link.mu.Lock()
		defer link.mu.Unlock()
		return link.sequence
	}
	take := func() store.Receipt {
		r, _, err := s.Take(t.Context(), charges)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := take()
	link.running.Wait() // until its queue has nothing to send
	before := batches()
	settled := make(chan error, 1)
	inside(s).SettleLater(r, []int64{1}, nil, func(err error) { settled <- err })
	link.running.Wait()
	if now := batches(); now != before {
		t.Errorf("it is sent at once")
	}
	take()
	if err := <-settled; err != nil {
		t.Error(err)
	}
	link.running.Wait()
	if n := batches() - before; n != 2 { // the second is empty, and the last
		t.Errorf("the settlement and the take are %d batches", n-1)
	}
}
