package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/internal/bookstest"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// A store whose settlements nobody waits for keeps the promises of a store.
func TestSettleLaterIsSettle(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		testkit.OneIn(t, 3)
		s := open(t)
		s.clock, s.uptime = clock, nil
		return bookstest.Later(s)
	})
}

// A settlement that nobody waits for is in the transaction of the next call, which finds it settled. If no call comes,
// it is made after a moment, and when the store is closed.
func TestSettleLater(t *testing.T) {
	l := perDay(10)
	entry := books.Entry{Owner: books.Owner{Project: "acme", Model: "m"}, Amounts: books.Amounts{books.Requests: 1}}
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.db")
		s, other := openAt(t, path), openAt(t, path)
		done := 0
		settle := func(r store.Receipt, actual int64) {
			e := entry
			inside(s).SettleLater(r, []int64{actual}, &e, func(err error) {
				if done++; err != nil {
					t.Error(err)
				}
			})
		}
		first := take(t, s, charge("key", 10, l))
		n := transactions(s)
		settle(first, 3)
		settle(first, 0) // is not the first
		second := take(t, s, charge("key", 7, l))
		if n.Load() != 1 || done != 2 {
			t.Errorf("a settlement and a take are %d transactions, and %d of 2 settlements were told of; want one", n.Load(), done)
		}
		settle(second, 1)
		if got := bookedTotal(t, s)[books.Requests]; got != 2 {
			t.Errorf("the books, read right after the second settlement, have %d calls", got)
		}
		wantUsed(t, s, "key", l, 4)
		third := take(t, s, charge("key", 6, l))
		settle(third, 2)
		wantUsed(t, other, "key", l, 10) // not yet
		time.Sleep(maxLater)
		synctest.Wait()
		wantUsed(t, other, "key", l, 6)
		settle(take(t, s, charge("key", 4, l)), 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantUsed(t, other, "key", l, 7)
		if got := bookedTotal(t, other)[books.Requests]; got != 4 || done != 5 {
			t.Errorf("%d calls are booked, and %d settlements were told of; want 4 and 5", got, done)
		}
	})
}

// A settlement waits for the next take for two milliseconds, although a timer that an earlier one has set ends before.
func TestSettleLaterWaitsForItsOwnTime(t *testing.T) {
	l := perDay(10)
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		settleLater(s, take(t, s, charge("key", 1, l)), 0)
		time.Sleep(maxLater / 2)
		second := take(t, s, charge("key", 1, l))
		n := transactions(s)
		settleLater(s, second, 0)
		for _, want := range []int64{0, 1} {
			time.Sleep(maxLater / 2)
			synctest.Wait()
			if n.Load() != want {
				t.Errorf("%d transactions; want %d", n.Load(), want)
			}
		}
	})
}

// settleLater settles a take of one charge without waiting, and returns what gets its error.
func settleLater(s *Store, r store.Receipt, actual int64) <-chan error {
	failed := make(chan error, 1)
	inside(s).SettleLater(r, []int64{actual}, nil, func(err error) { failed <- err })
	return failed
}

// A settlement that fails can be made again, and one of a store that is closed fails at once.
func TestSettleLaterFails(t *testing.T) {
	s := open(t)
	l := perDay(10)
	r := take(t, s, charge("key", 10, l))
	update(t, s, "ALTER TABLE ledger RENAME TO elsewhere")
	failed := settleLater(s, r, 1)
	if _, _, err := s.Take(t.Context(), charge("key", 1, l)); err == nil {
		t.Error("it can be done without a table")
	}
	if <-failed == nil {
		t.Error("it is settled without a table")
	}
	update(t, s, "ALTER TABLE elsewhere RENAME TO ledger")
	failed = settleLater(s, r, 1)
	wantUsed(t, s, "key", l, 1)
	if err := <-failed; err != nil {
		t.Error(err)
	}
	r = take(t, s, charge("key", 1, l))
	s.Close()
	if err := <-settleLater(s, r, 1); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v; want %v", err, store.ErrClosed)
	}
}

// While another process has the file locked, a call that only reads does without the settlements before it, which fail.
func TestReadsWithoutSettlements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s, other := openAt(t, path), openAt(t, path)
	s.busyTimeout = time.Nanosecond
	l := perDay(10)
	r := take(t, s, charge("key", 10, l))
	err := inside(other).Update(t.Context(), func(transaction.Tx) error {
		failed := settleLater(s, r, 1)
		wantUsed(t, s, "key", l, 10)
		if <-failed == nil {
			t.Error("it is settled in a file that is locked")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// While another process has the file locked, the end of a caller's context fails the call of that caller alone, and not
// the settlements that its transaction was to make.
func TestSettlementsOutliveTheirCaller(t *testing.T) {
	l := perDay(10)
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.db")
		s, other := openAt(t, path), openAt(t, path)
		r := take(t, s, charge("key", 10, l))
		var settled <-chan error
		err := inside(other).Update(t.Context(), func(transaction.Tx) error {
			settled = settleLater(s, r, 1)
			ctx, cancel := context.WithTimeout(t.Context(), s.busyTimeout/2)
			defer cancel()
			if _, _, err := s.Take(ctx, charge("key", 1, l)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v; want %v", err, context.DeadlineExceeded)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-settled; err != nil {
			t.Error(err)
		}
		wantUsed(t, s, "key", l, 1)
	})
}
