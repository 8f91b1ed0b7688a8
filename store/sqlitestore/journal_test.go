package sqlitestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Whatever stores on one file do in whatever order, and whenever the disk is full, calls that have passed are counted and
// booked once, and those that have failed not at all. Every store sees at once what the others have done.
func TestJournalOfManyStores(t *testing.T) {
	for seed := range testkit.Rounds(1, 30) {
		j := journalRun{T: t, random: rand.New(rand.NewPCG(uint64(seed), 1)), path: filepath.Join(t.TempDir(), "limits.db"), used: map[string]int64{}}
		for range 3 {
			j.stores = append(j.stores, openAt(t, j.path))
		}
		for i := range 400 {
			j.step()
			if i%20 == 0 {
				j.check()
			}
		}
		for _, s := range j.stores {
			s.Close()
		}
		j.stores = []*Store{openAt(t, j.path)}
		j.check()
		if n := number(t, j.path, "SELECT count(*) FROM journal"); n != 1 {
			t.Errorf("seed %d: the journal has %d rows after its books were read", seed, n)
		}
	}
}

// journalRun is stores that share a file, and what they must have.
type journalRun struct {
	*testing.T
	random *rand.Rand
	path   string
	stores []*Store
	used   map[string]int64 // by the key
	booked books.Amounts
	open   []openTake
}

type openTake struct {
	store   *Store
	receipt store.Receipt
	key     string
}

var journalLimit = limit.PerDay(1 << 40).Using(limit.SlidingLog)

func (j *journalRun) step() {
	place := j.random.IntN(len(j.stores))
	s := j.stores[place]
	switch n := j.random.IntN(100); {
	case n < 45:
		key := fmt.Sprint("key ", j.random.IntN(20))
		if n == 0 {
			key += strings.Repeat("x", 30_000)
		}
		r, _, err := s.Take(j.Context(), charge(key, 5, journalLimit))
		if err == nil {
			j.used[key] += 5
			j.open = append(j.open, openTake{s, r, key})
		}
	case n < 75 && len(j.open) > 0:
		i := j.random.IntN(len(j.open))
		o := j.open[i]
		e := books.Entry{Owner: books.Owner{Project: fmt.Sprint("p", j.random.IntN(30))}, Amounts: books.Amounts{books.Requests: 1, books.Beside: int64(j.random.IntN(2))}}
		actual := int64(j.random.IntN(8))
		if err := inside(o.store).SettleBooked(j.Context(), o.receipt, []int64{actual}, &e); err == nil {
			j.used[o.key] += actual - 5
			j.booked.Add(&e.Amounts)
			j.open = append(j.open[:i], j.open[i+1:]...)
		}
	case n < 80:
		if _, err := inside(s).ReadBooks(j.Context(), books.Query{}); err != nil && !strings.Contains(err.Error(), "full") {
			j.Error(err)
		}
	case n < 85:
		s.conn.ExecContext(context.Background(), "PRAGMA max_page_count = 1") // as many as it has
	case n < 92:
		s.conn.ExecContext(context.Background(), "PRAGMA max_page_count = 1000000")
	case n < 95:
		key := fmt.Sprint("key ", j.random.IntN(20))
		if s.Reset(j.Context(), key) == nil {
			for k := range j.used {
				if strings.HasPrefix(k, key) {
					delete(j.used, k)
				}
			}
			j.open = nil
		}
	default:
		if n < 98 {
			s.Close()
		} // otherwise it is left, as if it hung
		kept := j.open[:0]
		for _, o := range j.open {
			if o.store != s {
				kept = append(kept, o)
			}
		}
		j.open = kept
		j.stores[place] = openAt(j, j.path)
	}
}

// check compares what one of the stores has with what was done.
func (j *journalRun) check() {
	j.Helper()
	s := j.stores[j.random.IntN(len(j.stores))]
	s.conn.ExecContext(context.Background(), "PRAGMA max_page_count = 1000000")
	if got := bookedTotal(j, s); got != j.booked {
		j.Fatalf("%v is booked; want %v", got, j.booked)
	}
	for key, want := range j.used {
		wantUsed(j, s, key, journalLimit, want)
	}
	if j.Failed() {
		j.FailNow()
	}
}
