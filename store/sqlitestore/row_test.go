package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Full accounts are deleted as others come, and those in use never are.
func TestSweep(t *testing.T) {
	s := open(t)
	now := noon
	s.clock, s.uptime = func() int64 { return now }, nil
	const many = 200
	perMinute := limit.PerMinute(10).Using(limit.SlidingLog)
	rows := func() int {
		n, err := strconv.Atoi(query(t, s, "SELECT COUNT(*) FROM ledger"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	take(t, s, charge("in use", 1, perDay(10)))
	for i := range many {
		take(t, s, charge(fmt.Sprint("first ", i), 1, perMinute))
	}
	if got := rows(); got != many+1 {
		t.Fatalf("%d rows; want %d", got, many+1)
	}
	now += int64(10 * time.Minute)
	for i := range many {
		take(t, s, charge(fmt.Sprint("second ", i), 1, perMinute))
	}
	if got := rows(); got != many+1 {
		t.Errorf("%d rows after as many keys came as are full; want %d", got, many+1)
	}
	wantUsed(t, s, "in use", perDay(10), 1)
	for i := range many { // in use until the end of the minute
		now += int64(time.Minute) / many
		take(t, s, charge(fmt.Sprint("third ", i), 1, perMinute))
		wantUsed(t, s, "third 0", perMinute, 1)
	}
	now += int64(10 * time.Minute)
	for range 2 * many { // writes to an existing key sweep too
		take(t, s, charge("in use", 1, perDay(1000)))
		now += int64(time.Minute)
	}
	if got := rows(); got != 1 {
		t.Errorf("%d rows after one key was used for hours; want 1", got)
	}
	wantUsed(t, s, "in use", perDay(1000), 2*many+1)
}

func TestRoundUp(t *testing.T) {
	for at, want := range map[int64]int64{
		0: 0, 1: 1 << 36, 1 << 36: 1 << 36, 1<<36 + 1: 2 << 36, -1: 0, math.MaxInt64: math.MaxInt64, math.MinInt64: math.MinInt64,
	} {
		if got := roundUp(at); got != want {
			t.Errorf("%d is rounded to %d; want %d", at, got, want)
		}
	}
}

// The clock jumps by an hour in either direction, and the file is opened again in between. A denial
// does not last longer than it says, and nothing is granted.
func TestClockJumps(t *testing.T) {
	const hour = int64(time.Hour)
	for name, l := range map[string]limit.Limit{
		"gcra":    limit.PerMinute(5),
		"log":     limit.PerMinute(5).Using(limit.SlidingLog),
		"fixed":   limit.PerMinute(5).Using(limit.FixedWindow),
		"counter": limit.PerMinute(5).Using(limit.SlidingCounter),
	} {
		for _, jump := range []int64{-hour, hour} {
			t.Run(fmt.Sprintf("%s by %v", name, time.Duration(jump)), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "limits.db")
				now := noon
				do := func(n int64) limit.Decision {
					s := openAt(t, path)
					defer s.Close()
					s.clock, s.uptime = func() int64 { return now }, nil
					_, decisions, err := s.Take(t.Context(), charge("key", n, l))
					if err != nil {
						t.Fatal(err)
					}
					return decisions[0]
				}
				do(5)
				now += jump
				d := do(1)
				if d.Allowed != (jump > 0) {
					t.Fatalf("after the jump: %+v", d)
				}
				if jump > 0 {
					do(4)
					now -= jump // and back again
					if d = do(1); d.Allowed {
						t.Fatalf("back again: %+v", d)
					}
				}
				waited := int64(0)
				for !d.Allowed {
					if d.RetryAfter <= 0 || waited > int64(5*time.Minute) {
						t.Fatalf("still denied after %v: %+v", time.Duration(waited), d)
					}
					step := max(int64(d.RetryAfter)/2, 1) // asking on the way changes nothing
					now, waited = now+step, waited+step
					d = do(1)
				}
			})
		}
	}
}

// Rows that are no accounts are errors that name the key, whatever is in them, and a reset repairs
// them.
func TestCorruptRows(t *testing.T) {
	s := openLoose(t)
	take(t, s, charge("key", 3, perDay(10)))
	for _, row := range []string{
		"account = NULL", "account = ''", "account = x''", "account = 'text'", "account = 7", "account = 1.5", "account = x'ffffffffffffffffffff'",
		"account = zeroblob(100000)", "account = substr(account, 1, 5)", "account = account || x'00'",
		"full_at = NULL", "full_at = 'text'", "full_at = x'00'", "full_at = 1e300",
	} {
		update(t, s, "UPDATE ledger SET "+row)
		calls := []func() error{
			func() error { _, _, err := s.Take(t.Context(), charge("key", 1, perDay(10))); return err },
			func() error { _, err := s.Peek(t.Context(), charge("key", 1, perDay(10))); return err },
			func() error { _, _, err := s.Read(t.Context(), "key"); return err },
			func() error {
				return s.update(t.Context(), func(tx transaction.Tx) error { _, err := tx.Account("key"); return err })
			},
		}
		for i, call := range calls {
			err := call()
			if !errors.Is(err, limit.ErrCorrupt) || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path) || !strings.Contains(err.Error(), `"key"`) {
				t.Errorf("%s: call %d: %v", row, i, err)
			}
		}
		if err := s.Reset(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		take(t, s, charge("key", 3, perDay(10)))
		wantUsed(t, s, "key", perDay(10), 3)
	}
}

// SQLite refuses values of wrong types.
func TestTypes(t *testing.T) {
	s := open(t)
	take(t, s, charge("key", 3, perDay(10)))
	for _, row := range []string{"account = NULL", "account = 'text'", "full_at = NULL", "full_at = 'text'", "key = NULL", "key = 'text'"} {
		err := s.update(t.Context(), func(tx transaction.Tx) error { _, err := tx.Exec("UPDATE ledger SET " + row); return err })
		if err == nil {
			t.Errorf("%s is let through", row)
		}
	}
}

// openLoose opens a file with a table that accepts any type.
func openLoose(t testing.TB) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.db")
	older(t, path,
		"CREATE TABLE ledger (key PRIMARY KEY, full_at, account) WITHOUT ROWID",
		"CREATE INDEX ledger_full_at ON ledger (full_at)",
		"PRAGMA user_version = 2")
	return openAt(t, path)
}

// FuzzTampered writes rows that no store has written, and takes of them. There is an error, or no
// more than the limit is admitted.
func FuzzTampered(f *testing.F) {
	s := openLoose(f)
	var now int64
	s.clock, s.uptime = func() int64 { return now }, nil
	limits := []limit.Limit{
		limit.PerMinute(5), limit.PerMinute(5).WithBurst(2).Using(limit.LeakyBucket), limit.PerMinute(5).Using(limit.SlidingLog),
		limit.PerMinute(5).Using(limit.FixedWindow), limit.PerMinute(5).Anchored(), limit.PerDay(5).ResetAt(0, time.UTC),
		limit.PerMinute(5).Using(limit.SlidingCounter),
	}
	now = noon
	for n := range len(limits) + 1 { // rows to begin with: of nothing, of one limit, of all
		for _, l := range [][]limit.Limit{limits[:n], limits[n:]} {
			a := new(limit.Account)
			a.Take(l, noon-int64(time.Second), 2)
			a.Take(l, noon, 3)
			bytes, _ := a.AppendBinary(nil)
			for which := range limits {
				f.Add(bytes, a.FullAt(), byte(which), byte(n))
			}
			f.Add(bytes, int64(0), byte(n), byte(n<<4))
		}
	}
	f.Fuzz(func(t *testing.T, account []byte, fullAt int64, which, types byte) {
		l := limits[int(which)%len(limits)]
		now = noon
		err := s.update(t.Context(), func(tx transaction.Tx) error {
			_, err := tx.Exec("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)", []byte("key"), typed(types>>4, fullAt), typed(types&15, account))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			passed, err := passes(s, l)
			if err != nil && !errors.Is(err, limit.ErrCorrupt) {
				t.Fatalf("%v: %v", l, err)
			}
			if err != nil {
				if err := s.Reset(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				if passed, err = passes(s, l); err != nil || passed != l.Burst() {
					t.Fatalf("%v: %d passed after a reset, %v", l, passed, err)
				}
			}
			if passed > l.Burst() {
				t.Fatalf("%v: %d passed", l, passed)
			}
			now += int64(l.Period())
		}
	})
}

// typed returns a value as another SQLite type.
func typed(as byte, value any) any {
	switch as {
	case 1:
		return fmt.Sprint(value)
	case 2:
		return nil
	case 3:
		return 1.5
	case 4:
		return int64(7)
	case 5:
		return []byte{1}
	}
	return value
}

// passes takes of a key until it is denied, and returns how much was admitted.
func passes(s *Store, l limit.Limit) (n int64, err error) {
	for n <= l.Burst() {
		r, _, err := s.Take(context.Background(), charge("key", 1, l))
		if err != nil || r == nil {
			return n, err
		}
		n++
	}
	return n, nil
}
