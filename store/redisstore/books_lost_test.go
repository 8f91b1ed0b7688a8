package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
)

func bookedRequests(t testing.TB, s *Store) int64 {
	t.Helper()
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return sum.Total[books.Requests]
}

func oneRequest(project string) books.Entry {
	return books.Entry{Owner: books.Owner{Project: project}, Amounts: books.Amounts{books.Requests: 1}}
}

// Whatever goes wrong in whatever order: each call is booked, and once.
func TestBooksInChaos(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := opened(t, proxy.URL(), Config{Timeout: 50 * time.Millisecond, OnStoreLoss: Allow})
	flush := func() { serverDoAll(t, server, "FUNCTION FLUSH") }
	faults := []struct{ begin, end func() }{
		{proxy.DropAnswer, proxy.Heal},
		{func() { proxy.ResetAfter(rand.IntN(100)) }, proxy.Heal},
		{proxy.Cut, proxy.Heal},
		{proxy.StallAnswers, proxy.Heal},
		{server.Pause, server.Resume},
		{flush, func() {}},
	}
	want := int64(0)
	for _, i := range rand.Perm(len(faults)) {
		faults[i].begin()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					r, _, err := s.Take(t.Context(), one("key", limit.PerDay(1<<40), 1))
					if err != nil {
						t.Error(err)
						return
					}
					e := oneRequest(fmt.Sprint("project ", rand.IntN(3)))
					inside(s).SettleBooked(t.Context(), r, []int64{2}, &e) // the settlement may fail, the entry is kept
				}
			})
		}
		all.Wait()
		want += 8 * 20
		faults[i].end()
	}
	direct := opened(t, server.URL(), Config{Timeout: time.Minute})
	for bookedRequests(t, direct) < want {
		time.Sleep(time.Millisecond) // until the node finds that Redis is back
	}
	s.Close()
	if got := bookedRequests(t, direct); got != want {
		t.Errorf("%d calls are booked; want %d", got, want)
	}
}

// A node that is closed sends what it has kept while Redis was lost.
func TestBooksOfANodeThatIsClosed(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := opened(t, proxy.URL(), Config{Timeout: 100 * time.Millisecond})
	s.books.timeout = time.Hour // it does not try again by itself
	proxy.Cut()
	for range 3 {
		if err := inside(s).Book(t.Context(), []books.Entry{oneRequest("acme")}); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Heal()
	awaitBack(s)
	s.Close()
	if got := bookedRequests(t, opened(t, server.URL(), Config{Timeout: 10 * time.Second})); got != 3 {
		t.Errorf("%d calls are booked", got)
	}
}

// More lines than one op may have are booked, and read.
func TestBooksOfManyLines(t *testing.T) {
	t.Parallel()
	s := opened(t, redistest.New(t).URL(), Config{Timeout: 10 * time.Second})
	entries := make([]books.Entry, 3*linesAtOnce)
	for i := range entries {
		entries[i] = oneRequest(fmt.Sprint("project ", i))
	}
	for range 2 {
		if err := inside(s).Book(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{By: []books.Dimension{books.ByProject}})
	if err != nil || len(sum.Rows) != len(entries) || sum.Total[books.Requests] != int64(2*len(entries)) {
		t.Errorf("%d projects, %v, %v", len(sum.Rows), sum.Total, err)
	}
}

// An entry whose settlement has not happened after its caller has left is booked all the same.
func TestBookOfASettlementThatDidNotHappen(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: 10 * time.Second})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, happened := range []bool{true, false, false} {
		e := oneRequest("acme")
		o := s.books.opOf(&task{kind: taskSettle, takes: []*chargeReceipt{{}}, actual: []int64{1}, entry: &e})
		if err := s.books.do(gone, o); err == nil {
			t.Fatal("a caller that has left gets an answer")
		}
		o.late(result{err: errors.New("fault"), notRun: !happened})
	}
	s.Close() // which sends what waits
	if got := bookedRequests(t, opened(t, server.URL(), Config{Timeout: 10 * time.Second})); got != 2 {
		t.Errorf("%d calls are booked; want the two whose settlements did not happen", got)
	}
}
