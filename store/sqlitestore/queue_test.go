package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// transactions counts a store's transactions: each reads the clock once.
func transactions(s *Store) *atomic.Int64 {
	var n atomic.Int64
	clock := s.clock
	s.clock = func() int64 {
		n.Add(1)
		return clock()
	}
	return &n
}

// occupy lets a transaction run until release is called. Calls in between wait.
func occupy(t *testing.T, s *Store) (release func()) {
	t.Helper()
	inside, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.update(t.Context(), func(transaction.Tx) error {
			close(inside)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	return func() {
		close(end)
		wg.Wait()
	}
}

// Calls that wait for one transaction share the next one, in the order in which they came, up to
// its maximum.
func TestCombining(t *testing.T) {
	for _, test := range []struct{ calls, most, want int }{
		{100, 1024, 1},
		{100, 100, 1},
		{100, 30, 4},
		{3, 1, 3},
	} {
		t.Run(fmt.Sprintf("%d calls, %d at a time", test.calls, test.most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t)
				s.maxBatch = test.most
				release := occupy(t, s)
				n := transactions(s)
				left := make([]int64, test.calls)
				var wg sync.WaitGroup
				for i := range test.calls {
					wg.Go(func() {
						_, decisions, err := s.Take(t.Context(), charge("key", 1, perDay(100)))
						if err != nil {
							t.Error(err)
							return
						}
						left[i] = decisions[0].Remaining
					})
					synctest.Wait()
				}
				release()
				wg.Wait()
				if n.Load() != int64(test.want) {
					t.Errorf("%d transactions; want %d", n.Load(), test.want)
				}
				for i := range left {
					if left[i] != int64(99-i) {
						t.Errorf("call %d left %d; want %d", i, left[i], 99-i)
					}
				}
				wantUsed(t, s, "key", perDay(100), int64(test.calls))
			})
		})
	}
}

// Callers that can run when a transaction is about to begin share it.
func TestReadyCallersShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // all of them are ready, and none runs at the same time
	s := open(t)
	take(t, s, charge("key", 1, perDay(100)))
	n := transactions(s)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, _, err := s.Take(t.Context(), charge("key", 1, perDay(100))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n.Load() > 10 {
		t.Errorf("50 callers that were ready made %d transactions; want one, or few", n.Load())
	}
}

// A caller that is alone, because every take is settled, does not give up the processor: to wake another thread takes
// longer than a part of its transaction. A goroutine that can run, and is no caller, may run all the same now and then.
func TestLoneCallersDoNotYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := open(t)
	kept := 0 // how often the caller has kept the processor
	const calls = 200
	for range calls {
		r := take(t, s, charge("key", 1, perDay(1000)))
		if err := s.Settle(t.Context(), r, []int64{0}); err != nil {
			t.Fatal(err)
		}
		var ran atomic.Bool
		go ran.Store(true)
		r = take(t, s, charge("key", 1, perDay(1000)))
		if !ran.Load() {
			kept++
		}
		if err := s.Settle(t.Context(), r, []int64{0}); err != nil {
			t.Fatal(err)
		}
	}
	if kept < calls/10 {
		t.Errorf("of %d callers that were alone, %d kept the processor; want most", calls, kept)
	}
}

// wantUnsettled requires a number of takes that are not settled.
func wantUnsettled(t *testing.T, s *Store, want int64) {
	t.Helper()
	if got := s.unsettled.Load(); got != want {
		t.Errorf("%d takes count as not settled; want %d", got, want)
	}
}

// Each take that is admitted, and each renewal of one, counts as not settled until its first settlement.
func TestUnsettled(t *testing.T) {
	s := open(t)
	slots := charge("slots", 1, limit.New(1, 10*time.Minute).Using(limit.SlidingLog))
	r := take(t, s, slots)
	if _, decisions, err := s.Take(t.Context(), slots); err != nil || store.Allowed(decisions) {
		t.Fatal(decisions, err)
	}
	wantUnsettled(t, s, 1)
	renewed, err := inside(s).Renew(t.Context(), r, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	wantUnsettled(t, s, 2)
	for range 2 {
		inside(s).SettleLater(r, []int64{-1}, nil, func(error) {})
		if err := s.Settle(t.Context(), renewed, []int64{0}); err != nil {
			t.Fatal(err)
		}
		wantUnsettled(t, s, 0)
	}
}

// Of calls that share a transaction, one that fails by itself fails alone.
func TestOneFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		take(t, s, charge("corrupt", 1, perDay(10)))
		update(t, s, "UPDATE ledger SET account = x'00' WHERE key = CAST('corrupt' AS BLOB)")
		release := occupy(t, s)
		n := transactions(s)
		var wg sync.WaitGroup
		for i := range 9 {
			key, other := fmt.Sprint(i), "other"
			if i%3 == 0 {
				other = "corrupt"
			}
			wg.Go(func() {
				r, _, err := s.Take(t.Context(), append(charge(key, 1, perDay(10)), charge(other, 1, perDay(10))...))
				if other == "corrupt" {
					if !errors.Is(err, limit.ErrCorrupt) || !strings.Contains(err.Error(), `"corrupt"`) || !strings.Contains(err.Error(), s.path) {
						t.Errorf("%d: %v", i, err)
					}
					return
				}
				if err != nil || r == nil {
					t.Errorf("%d: %v, %v", i, r, err)
				}
			})
		}
		synctest.Wait()
		release()
		wg.Wait()
		if n.Load() != 1 {
			t.Errorf("%d transactions; want 1", n.Load())
		}
		wantUsed(t, s, "other", perDay(10), 6)
		for i := range 9 {
			want := int64(1)
			if i%3 == 0 {
				want = 0 // all or nothing
			}
			wantUsed(t, s, fmt.Sprint(i), perDay(10), want)
		}
	})
}

// If the file cannot be read, all calls of the transaction fail, and nothing has happened: SQLite
// may have ended the transaction by itself.
func TestFileFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		update(t, s,
			"ALTER TABLE ledger RENAME TO real",
			`CREATE VIEW ledger AS SELECT key, full_at,
				CASE key WHEN CAST('bad' AS BLOB) THEN abs(-9223372036854775808) ELSE account END AS account FROM real`, // reading the key "bad" fails
			"CREATE TRIGGER i INSTEAD OF INSERT ON ledger BEGIN INSERT OR REPLACE INTO real VALUES (NEW.key, NEW.full_at, NEW.account); END",
			"CREATE TRIGGER u INSTEAD OF UPDATE ON ledger BEGIN UPDATE real SET account = NEW.account WHERE key = NEW.key; END",
			"CREATE TRIGGER d INSTEAD OF DELETE ON ledger BEGIN DELETE FROM real WHERE key = OLD.key; END")
		take(t, s, charge("good", 1, perDay(10)))
		take(t, s, charge("bad", 1, perDay(10)))
		release := occupy(t, s)
		var wg sync.WaitGroup
		for _, key := range []string{"good", "bad", "good"} {
			wg.Go(func() {
				_, _, err := s.Take(t.Context(), charge(key, 1, perDay(10)))
				if err == nil || errors.Is(err, limit.ErrCorrupt) || !strings.Contains(err.Error(), "integer overflow") {
					t.Errorf("%s: %v", key, err)
				}
			})
			synctest.Wait()
		}
		release()
		wg.Wait()
		wantUsed(t, s, "good", perDay(10), 1)
	})
}

// breakCommits makes every transaction fail as it is committed, until mended.
var (
	// breakCommits makes every commit fail until it is mended.
	breakCommits = []string{
		"CREATE TABLE parents (id INTEGER PRIMARY KEY)",
		"CREATE TABLE orphans (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TRIGGER born AFTER INSERT ON journal WHEN NEW.changes <> x'' BEGIN INSERT INTO orphans VALUES (1); END",
	}
	mendCommits = []string{"DROP TRIGGER born"}
)

func breakAll(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA foreign_keys = ON"); err != nil { // not in a transaction
		t.Fatal(err)
	}
	update(t, s, breakCommits...)
}

// If the commit fails, all calls of the transaction fail, and nothing has happened.
func TestFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		taken := take(t, s, charge("key", 5, perDay(100)))
		breakAll(t, s)
		release := occupy(t, s)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				r, decisions, err := s.Take(t.Context(), append(charge("key", 1, perDay(100)), charge(fmt.Sprint(i), 1, perDay(100))...))
				if err == nil || r != nil || decisions != nil || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path) {
					t.Errorf("%v, %v, %v", r, decisions, err)
				}
			})
		}
		wg.Go(func() {
			if err := s.Settle(t.Context(), taken, []int64{0}); err == nil {
				t.Error("it was settled")
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
		wantUsed(t, s, "key", perDay(100), 5)
		wantUsed(t, s, "0", perDay(100), 0)

		update(t, s, mendCommits...)
		for range 2 { // now it can be settled, once
			if err := s.Settle(t.Context(), taken, []int64{2}); err != nil {
				t.Error(err)
			}
		}
		wantUsed(t, s, "key", perDay(100), 2)
		wantUnsettled(t, s, 0)
	})
}

// A caller that gives up while waiting has taken nothing, and blocks no other.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		taken := take(t, s, charge("taken", 5, perDay(10)))
		release := occupy(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, _, err := s.Take(ctx, charge("key", 1, perDay(10))); return err },
			func() error { _, err := s.Peek(ctx, charge("key", 1, perDay(10))); return err },
			func() error { return s.Settle(ctx, taken, []int64{0}) },
			func() error { return s.Reset(ctx, "") },
			func() error { return s.update(ctx, func(transaction.Tx) error { t.Error("it ran"); return nil }) },
		} {
			wg.Go(func() {
				if err := call(); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
					t.Errorf("%v; want %v", err, context.Canceled)
				}
			})
			synctest.Wait()
		}
		stays := make(chan error, 1)
		go func() {
			_, _, err := s.Take(t.Context(), charge("key", 2, perDay(10)))
			stays <- err
		}()
		synctest.Wait()
		cancel()
		wg.Wait() // while the store is still occupied
		release()
		if err := <-stays; err != nil {
			t.Error(err)
		}
		wantUsed(t, s, "key", perDay(10), 2)
		wantUsed(t, s, "taken", perDay(10), 5)
		if err := s.Settle(t.Context(), taken, []int64{1}); err != nil {
			t.Error(err)
		}
		wantUsed(t, s, "taken", perDay(10), 1)
	})
}

// A caller that gives up at the moment at which it is to run a transaction passes that on.
func TestGivingUpTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		var charged int64
		for range 50 {
			s.working = true // as if this test ran a transaction
			ctx, cancel := context.WithCancel(t.Context())
			var passed atomic.Int64
			var wg sync.WaitGroup
			for _, ctx := range []context.Context{ctx, ctx, t.Context()} {
				wg.Go(func() {
					switch _, _, err := s.Take(ctx, charge("key", 1, perDay(1000))); {
					case err == nil:
						passed.Add(1)
					case !errors.Is(err, context.Canceled):
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			s.mu.Lock()
			cancel()
			runtime.Gosched() // a caller that gives up now finds the store locked
			s.queue[0].wake <- true
			s.mu.Unlock()
			wg.Wait()
			charged += passed.Load()
			wantUsed(t, s, "key", perDay(1000), charged)
		}
	})
}

// Once a transaction runs it, a call returns what has happened, whether its context has ended or
// not.
func TestContextEndsInTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		release := occupy(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		s.clock = func() int64 { // read once the transaction has begun
			cancel()
			synctest.Wait()
			return noon
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				r, decisions, err := s.Take(ctx, charge("key", 1, perDay(10)))
				if err != nil || r == nil || !store.Allowed(decisions) {
					t.Errorf("%v, %v, %v", r, decisions, err)
				}
			})
		}
		synctest.Wait()
		release()
		wg.Wait()
		wantUsed(t, s, "key", perDay(10), 3)
	})
}

// A step that panics fails the calls that share its transaction, and no others.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		release := occupy(t, s)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			s.submit(&operation{ctx: t.Context(), writes: true, step: func(*batch) error { panic("step") }})
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if _, _, err := s.Take(t.Context(), charge("key", 1, perDay(10))); err != errPanic {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		release()
		wg.Wait()
		wantUsed(t, s, "key", perDay(10), 0)
		take(t, s, charge("key", 1, perDay(10)))
	})
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		taken, settled := take(t, s, charge("key", 1, perDay(10))), take(t, s, charge("key", 1, perDay(10)))
		if err := s.Settle(t.Context(), settled, []int64{0}); err != nil {
			t.Error(err)
		}
		release := occupy(t, s)
		var closed atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { take(t, s, charge("key", 1, perDay(10))) })
		synctest.Wait()
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		})
		synctest.Wait()
		if closed.Load() {
			t.Error("it was closed while a transaction ran")
		}
		for name, call := range map[string]func() error{
			"take":   func() error { _, _, err := s.Take(t.Context(), charge("key", 1, perDay(10))); return err },
			"peek":   func() error { _, err := s.Peek(t.Context(), charge("key", 1, perDay(10))); return err },
			"settle": func() error { return s.Settle(t.Context(), taken, []int64{0}) },
			"again":  func() error { return s.Settle(t.Context(), settled, []int64{0}) },
			"reset":  func() error { return s.Reset(t.Context(), "") },
			"read":   func() error { _, _, err := s.Read(t.Context(), "key"); return err },
			"keys":   func() error { _, err := s.Keys(t.Context(), ""); return err },
			"update": func() error { return s.update(t.Context(), func(transaction.Tx) error { return nil }) },
		} {
			if err := call(); !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		release()
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
		wantUsed(t, openAt(t, s.path), "key", perDay(10), 2)
	})
}

// A call that comes after a transaction has begun that only reads is not run in it: it would not see what others have
// written before it came. A transaction that writes has the file locked, so that it can run such calls.
func TestReadsShareNoOlderTransaction(t *testing.T) {
	for writes, want := range map[bool]int{false: 2, true: 3} {
		s := &Store{maxBatch: 10}
		come := func() {
			s.came++
			s.queue = append(s.queue, &operation{number: s.came})
		}
		come()
		come()
		_, came := s.look()
		come() // while the transaction begins
		if got := len(s.takeBatch(writes, came)); got != want || len(s.queue) != 3-want {
			t.Errorf("writes %v: it runs %d calls, and %d wait; want %d of 3", writes, got, len(s.queue), want)
		}
	}
}
