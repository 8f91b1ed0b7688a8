package sqlitestore

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		s := open(t)
		s.clock, s.uptime = clock, nil
		return s
	})
}

// noon is a time at which no window begins.
var noon = time.Date(2026, time.March, 14, 12, 0, 0, 1, time.UTC).UnixNano()

// perDay is a limit whose window is longer than any test.
func perDay(n int64) limit.Limit { return limit.PerDay(n).Using(limit.SlidingLog) }

func charge(key string, n int64, limits ...limit.Limit) []store.Charge {
	return []store.Charge{{Key: key, Limits: limits, N: n}}
}

func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "limits.db"))
}

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func take(t testing.TB, s *Store, charges []store.Charge) store.Receipt {
	t.Helper()
	r, decisions, err := s.Take(t.Context(), charges)
	if err != nil || r == nil {
		t.Fatalf("take %+v: %+v, %v", charges, decisions, err)
	}
	return r
}

func wantUsed(t testing.TB, s *Store, key string, l limit.Limit, want int64) {
	t.Helper()
	accounts, now, err := s.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if used := accounts[0].Check(l, now, 0).Used; used != want {
		t.Fatalf("%d of %q are used; want %d", used, key, want)
	}
}

// update runs statements.
func update(t testing.TB, s *Store, statements ...string) {
	t.Helper()
	err := s.update(t.Context(), func(tx transaction.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// query returns the one value of a query.
func query(t testing.TB, s *Store, query string) (value string) {
	t.Helper()
	err := s.update(t.Context(), func(tx transaction.Tx) error {
		rows, err := tx.Query(query)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return errors.New("no row")
		}
		return rows.Scan(&value)
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	now := noon
	limits := []limit.Limit{
		limit.PerMinute(10), perDay(10), limit.PerDay(20).ResetAt(0, time.UTC), limit.PerHour(30).Using(limit.SlidingCounter),
	}
	reopen := func() *Store {
		s := openAt(t, path)
		s.clock, s.uptime = func() int64 { return now }, nil
		return s
	}
	s := reopen()
	for range 3 {
		take(t, s, charge("key", 2, limits...))
		now += int64(time.Second)
	}
	before, err := s.Peek(t.Context(), charge("key", 1, limits...))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := reopen().Peek(t.Context(), charge("key", 1, limits...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("%+v is %+v after the file was opened again", before[i], after[i])
		}
	}
}

// Two stores of one process share a file as two processes do.
func TestTwoStoresOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	stores := []*Store{openAt(t, path), openAt(t, path)}
	const most = 300
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 50 {
				r, _, err := stores[i%2].Take(t.Context(), charge("key", 1, perDay(most)))
				if err != nil {
					t.Error(err)
				}
				if r != nil {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != most {
		t.Errorf("%d were admitted; want %d", admitted.Load(), most)
	}
	if _, _, err := stores[0].Take(t.Context(), charge("key", 1, perDay(most))); err != nil {
		t.Error(err)
	}
	r := take(t, stores[0], charge("other", 1, perDay(most)))
	if err := stores[1].Settle(t.Context(), r, []int64{0}); !errors.Is(err, store.ErrReceipt) {
		t.Errorf("a receipt of another store: %v", err)
	}
}

// Reads and denials do not write to the file.
func TestNothingIsWrittenInVain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s, other := openAt(t, path), openAt(t, path)
	limits := []limit.Limit{perDay(5), limit.PerDay(5), limit.PerDay(5).Using(limit.FixedWindow)}
	taken := take(t, s, charge("key", 5, limits...))
	version := query(t, other, "PRAGMA data_version")
	for name, call := range map[string]func() error{
		"peek": func() error {
			_, err := s.Peek(t.Context(), charge("key", 1, limits...))
			return err
		},
		"read": func() error {
			_, _, err := s.Read(t.Context(), "key", "unknown")
			return err
		},
		"denied": func() error {
			r, _, err := s.Take(t.Context(), charge("key", 1, limits...))
			if r != nil {
				return errors.New("it was allowed")
			}
			return err
		},
		"denied by one of two": func() error {
			_, _, err := s.Take(t.Context(), append(charge("other", 1, limits...), charge("key", 1, limits...)...))
			return err
		},
		"never": func() error {
			_, _, err := s.Take(t.Context(), charge("unknown", 6, limits...))
			return err
		},
		"nothing": func() error {
			_, _, err := s.Take(t.Context(), append(charge("key", 0, limits...), charge("unknown", 0, limits...)...))
			return err
		},
		"no charges": func() error {
			_, _, err := s.Take(t.Context(), nil)
			return err
		},
		"settled as it was": func() error { return s.Settle(t.Context(), taken, []int64{5}) },
		"reset of nothing":  func() error { return s.Reset(t.Context(), "unknown") },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now := query(t, other, "PRAGMA data_version"); now != version {
			t.Errorf("%s: the file was written to", name)
			version = now
		}
	}
	update(t, s, "PRAGMA user_version = 3") // the same again
	if now := query(t, other, "PRAGMA data_version"); now == version {
		t.Error("a write goes unnoticed")
	}
}

func TestSettings(t *testing.T) {
	s := open(t)
	for setting, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "user_version": "3"} {
		if got := query(t, s, "PRAGMA "+setting); got != want {
			t.Errorf("%s is %s; want %s", setting, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	s := open(t)
	s.clock, s.uptime = func() int64 { return noon }, nil
	take(t, s, charge("a", 3, perDay(10)))
	accounts, now, err := s.Read(t.Context(), "b", "a", "a")
	if err != nil || now != noon || len(accounts) != 3 {
		t.Fatalf("%v, %d, %v", accounts, now, err)
	}
	for i, want := range []int64{0, 3, 3} {
		if used := accounts[i].Check(perDay(10), now, 0).Used; used != want {
			t.Errorf("account %d has used %d; want %d", i, used, want)
		}
	}
	accounts[1].Take([]limit.Limit{perDay(10)}, now, 7) // belongs to the caller alone
	if used := accounts[2].Check(perDay(10), now, 0).Used; used != 3 {
		t.Errorf("two accounts are one")
	}
	wantUsed(t, s, "a", perDay(10), 3)
}

func TestKeys(t *testing.T) {
	s := open(t)
	for _, key := range []string{"", "a", "a\x00", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff1", "A", "a%", "a_"} {
		take(t, s, charge(key, 1, perDay(10)))
	}
	for prefix, want := range map[string][]string{
		"":         {"", "A", "a", "a\x00", "a%", "a_", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff1"},
		"a":        {"a", "a\x00", "a%", "a_", "a\xff", "a\xff\xff"},
		"a\xff":    {"a\xff", "a\xff\xff"},
		"\xff":     {"\xff", "\xff\xff1"},
		"\xff\xff": {"\xff\xff1"},
		"a%":       {"a%"},
		"c":        nil,
	} {
		if got, err := s.Keys(t.Context(), prefix); err != nil || !slices.Equal(got, want) {
			t.Errorf("keys that begin with %q are %q, %v; want %q", prefix, got, err, want)
		}
	}
	for _, step := range []struct {
		prefix string
		want   []string // that are left
	}{
		{"\xff\xff", []string{"", "A", "a", "a\x00", "a%", "a_", "a\xff", "a\xff\xff", "b", "\xff"}},
		{"a\xff", []string{"", "A", "a", "a\x00", "a%", "a_", "b", "\xff"}},
		{"a%", []string{"", "A", "a", "a\x00", "a_", "b", "\xff"}},
		{"a\x00", []string{"", "A", "a", "a_", "b", "\xff"}},
		{"a", []string{"", "A", "b", "\xff"}},
		{"\xff", []string{"", "A", "b"}},
		{"", nil},
	} {
		if err := s.Reset(t.Context(), step.prefix); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Keys(t.Context(), ""); err != nil || !slices.Equal(got, step.want) {
			t.Errorf("after %q was reset, %q are left, %v; want %q", step.prefix, got, err, step.want)
		}
	}
}
