package sqlitestore

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// lock lets another connection lock the file.
func lock(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	return occupy(t, openAt(t, s.path))
}

func TestLocked(t *testing.T) {
	s := open(t)
	s.busyTimeout = 20 * time.Millisecond
	taken := take(t, s, charge("key", 5, perDay(10)))
	unlock := lock(t, s)
	for name, call := range map[string]func() error{
		"take":   func() error { _, _, err := s.Take(t.Context(), charge("key", 1, perDay(10))); return err },
		"settle": func() error { return s.Settle(t.Context(), taken, []int64{0}) },
		"reset":  func() error { return s.Reset(t.Context(), "") },
		"update": func() error {
			return s.update(t.Context(), func(transaction.Tx) error { t.Error("it ran"); return nil })
		},
		"open": func() error {
			other := newStore(s.path)
			other.busyTimeout = s.busyTimeout
			return other.open()
		},
	} {
		err := call()
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path+": others have had it locked for more than 20ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantUsed(t, s, "key", perDay(10), 5) // a reader does not wait
	if d, err := s.Peek(t.Context(), charge("key", 6, perDay(10))); err != nil || d[0].Allowed {
		t.Errorf("peek: %+v, %v", d, err)
	}
	unlock()
	if err := s.Settle(t.Context(), taken, []int64{2}); err != nil {
		t.Error(err)
	}
	wantUsed(t, s, "key", perDay(10), 2)
}

// A call that waits for others to unlock the file gets it as soon as they do, and may give up
// before that.
func TestWaitingForOthers(t *testing.T) {
	s := open(t)
	unlock := lock(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if _, _, err := s.Take(ctx, charge("key", 1, perDay(10))); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for waiting(s) <= i { // the first of them waits for the file, the others for the first
			runtime.Gosched()
		}
	}
	stays := make(chan error)
	go func() {
		_, _, err := s.Take(t.Context(), charge("key", 2, perDay(10)))
		stays <- err
	}()
	cancel()
	wg.Wait()
	unlock()
	if err := <-stays; err != nil {
		t.Error(err)
	}
	wantUsed(t, s, "key", perDay(10), 2)
}

func waiting(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func TestDiskFull(t *testing.T) {
	s := open(t)
	take(t, s, charge("key", 1, perDay(10)))
	pages := query(t, s, "PRAGMA page_count")
	update(t, s, "PRAGMA max_page_count = "+pages)
	long := strings.Repeat("x", 10_000)
	r, _, err := s.Take(t.Context(), append(charge("key", 1, perDay(10)), charge(long, 1, perDay(10))...))
	if r != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path+": the disk is full") {
		t.Errorf("%v, %v", r, err)
	}
	wantUsed(t, s, "key", perDay(10), 1)
	wantUsed(t, s, long, perDay(10), 0)
	update(t, s, "PRAGMA max_page_count = 1000000")
	take(t, s, append(charge("key", 1, perDay(10)), charge(long, 1, perDay(10))...))
}

// The log begins again when it is long, as soon as no reader uses the old one.
func TestLogStaysShort(t *testing.T) {
	s := open(t)
	update(t, s, "CREATE TABLE mine (page BLOB)")
	grow := func() (longest int) {
		for range 400 {
			update(t, s, "INSERT INTO mine VALUES (zeroblob(40000))") // ten pages
			var busy, pages, moved int
			if err := s.do.logLength.QueryRow().Scan(&busy, &pages, &moved); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, pages)
		}
		return longest
	}
	const most = maxLogPages + trimEvery*20
	if got := grow(); got > most {
		t.Errorf("it has become %d pages long; want %d at most", got, most)
	}
	reader := openAt(t, s.path)
	if err := reader.begin(t.Context(), time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if got := grow(); got <= most {
		t.Errorf("it is not longer than %d pages, and somebody reads it", got)
	}
	if err := reader.commit(); err != nil {
		t.Fatal(err)
	}
	update(t, s, "DROP TABLE mine", "CREATE TABLE mine (page BLOB)")
	grow()
	if got := grow(); got > most {
		t.Errorf("it is %d pages long after somebody has read it; want %d at most", got, most)
	}
}

func TestUpdate(t *testing.T) {
	s := open(t)
	s.clock, s.uptime = func() int64 { return noon }, nil
	update(t, s, "CREATE TABLE mine (name TEXT)")
	imported := new(limit.Account)
	imported.Take([]limit.Limit{perDay(10)}, noon, 4)
	work := func(tx transaction.Tx) error {
		if tx.Now() != noon {
			t.Errorf("it began at %d; want %d", tx.Now(), noon)
		}
		if _, err := tx.Exec("INSERT INTO mine VALUES (?)", "x"); err != nil {
			return err
		}
		if err := tx.Put("imported", imported); err != nil {
			return err
		}
		a, err := tx.Account("imported")
		if err != nil {
			return err
		}
		if used := a.Check(perDay(10), noon, 0).Used; used != 4 {
			t.Errorf("%d are used; want 4", used)
		}
		none, err := tx.Account("none")
		if err != nil || none.FullAt() != 0 {
			t.Errorf("%+v, %v", none, err)
		}
		return tx.Delete("old")
	}
	take(t, s, charge("old", 3, perDay(10)))
	failed := errors.New("failed")
	for name, end := range map[string]func() error{
		"an error":            func() error { return failed },
		"a panic":             func() error { panic(failed) },
		"one after a failure": func() error { return nil },
	} {
		func() {
			defer func() { recover() }()
			err := s.update(t.Context(), func(tx transaction.Tx) error {
				if err := work(tx); err != nil {
					t.Error(err)
				}
				if name == "one after a failure" {
					tx.Exec("ROLLBACK") // as SQLite does by itself if the disk is full
				}
				return end()
			})
			if err == nil || name == "an error" && err != failed {
				t.Errorf("%s: %v", name, err)
			}
		}()
		if got := query(t, s, "SELECT COUNT(*) FROM mine"); got != "0" {
			t.Errorf("after %s there are %s rows", name, got)
		}
		wantUsed(t, s, "imported", perDay(10), 0)
		wantUsed(t, s, "old", perDay(10), 3)
	}
	if err := s.update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s, "SELECT COUNT(*) FROM mine"); got != "1" {
		t.Errorf("there are %s rows; want 1", got)
	}
	wantUsed(t, s, "imported", perDay(10), 4)
	wantUsed(t, s, "old", perDay(10), 0)
	if err := s.update(t.Context(), func(tx transaction.Tx) error { _, err := tx.Exec("nonsense"); return err }); err == nil ||
		!strings.HasPrefix(err.Error(), "ratelimit: "+s.path) {
		t.Errorf("%v does not name the file", err)
	}
}

// An account that is replaced refunds nothing for takes from the one before.
func TestPutVoidsReceipts(t *testing.T) {
	s := open(t)
	taken := take(t, s, charge("key", 3, perDay(10)))
	err := s.update(t.Context(), func(tx transaction.Tx) error {
		a := new(limit.Account)
		a.Take([]limit.Limit{perDay(10)}, tx.Now(), 5)
		return tx.Put("key", a)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), taken, []int64{0}); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, s, "key", perDay(10), 5)
}

// After its own transactions, a store need not read anew what it knows of the file. After one of another process, it must.
func TestOthersChangesAreSeen(t *testing.T) {
	s := open(t)
	other := openAt(t, s.path)
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{perDay(100)}, N: 1}}
	changed := func(writes bool) bool {
		if err := s.begin(t.Context(), time.Now(), writes); err != nil {
			t.Fatal(err)
		}
		s.do.rollback.Exec()
		return !s.batch.journal.synced
	}
	for _, writes := range []bool{true, false} {
		take(t, s, charges)
		take(t, s, charges)
		if changed(writes) {
			t.Errorf("writes %t: the store's own transaction counts as that of another", writes)
		}
		take(t, other, charges)
		if !changed(writes) {
			t.Errorf("writes %t: another's transaction is not seen", writes)
		}
	}
}
