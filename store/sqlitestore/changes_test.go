package sqlitestore

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// number returns the one number of a query, by another connection, which sees the file as it is.
func number(t testing.TB, path, query string) int {
	t.Helper()
	var n int
	db := openSQL(t, path)
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// What a call writes does not grow with what its key has used, also if its take is settled much later, and the changes
// are folded before there are many.
func TestCallsWriteLittle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openAt(t, path)
	l := perDay(1 << 40)
	var taken []store.Receipt
	most := 0
	for i := range 3000 {
		taken = append(taken, take(t, s, charge("key", 1, l)))
		if i%7 == 6 {
			if err := s.Settle(t.Context(), taken[i/2], []int64{0}); err != nil {
				t.Fatal(err)
			}
		}
		if i%100 == 99 {
			most = max(most, number(t, path, "SELECT max(length(changes)) FROM journal WHERE id > (SELECT max(id) - 50 FROM journal)"))
		}
	}
	if most > 300 {
		t.Errorf("a call writes up to %d bytes", most)
	}
	if n := number(t, path, "SELECT count(*) FROM journal"); n > maxChanges+1 {
		t.Errorf("there are %d rows of changes; want at most %d", n, maxChanges+1)
	}
	if n := number(t, path, "SELECT length(account) FROM ledger"); n < 1000 {
		t.Errorf("the ledger has %d bytes of an account that was used for 3,000 calls", n)
	}
}

// However many keys are used, they do not stay in memory.
func TestChangesOfManyKeys(t *testing.T) {
	s := open(t)
	for i := range 5 * maxUnfolded {
		take(t, s, charge(strconv.Itoa(i), 1, perDay(10)))
		if n := len(s.batch.rows); n > maxUnfolded+maxCachedRows+1 {
			t.Fatalf("%d keys are in memory after %d calls", n, i)
		}
	}
	for i := range 5 * maxUnfolded {
		wantUsed(t, s, strconv.Itoa(i), perDay(10), 1)
	}
}

// Stores that share a file count as one, though each folds what the others have written, and a store that comes later
// knows what none has folded.
func TestChangesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	stores := []*Store{openAt(t, path), openAt(t, path), openAt(t, path)}
	limits := []limit.Limit{perDay(1 << 40), limit.PerDay(1 << 40).Using(limit.FixedWindow), limit.PerMinute(1 << 40)}
	const calls = 1500
	for i := range calls {
		s := stores[i*i%7%3]
		r := take(t, s, append(charge("key", 2, limits...), charge(fmt.Sprint("key ", i%40), 1, limits...)...))
		if err := s.Settle(t.Context(), r, []int64{1, -1}); err != nil {
			t.Fatal(err)
		}
		if i%100 == 50 {
			if err := stores[i/100%3].Reset(t.Context(), "key 39"); err != nil { // every store must drop what it knows
				t.Fatal(err)
			}
			for _, s := range stores {
				wantUsed(t, s, "key 39", limits[0], 0)
			}
		}
	}
	late := openAt(t, path)
	for _, s := range append(stores, late) {
		wantUsed(t, s, "key", limits[0], calls)
		wantUsed(t, s, "key", limits[1], calls)
		wantUsed(t, s, "key 7", limits[0], (calls-7+39)/40)
	}
}

// Changes that do not fit their account are an error of this key alone, and stay one when they are folded: what was used
// must not be forgotten.
func TestCorruptChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openAt(t, path)
	for range 2 {
		take(t, s, charge("key", 3, perDay(10)))
		take(t, s, charge("other", 3, perDay(10)))
	}
	if _, err := openSQL(t, path).Exec("DELETE FROM journal WHERE id = 2"); err != nil { // the first take of the key
		t.Fatal(err)
	}
	again := openAt(t, path)
	for range 2 {
		if _, _, err := again.Take(t.Context(), charge("key", 1, perDay(10))); !isCorrupt(err) {
			t.Errorf("%v; want a corrupt account", err)
		}
		wantUsed(t, again, "other", perDay(10), 6)
		update(t, again, "UPDATE ledger SET full_at = full_at") // folds
	}
	if err := again.Reset(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, again, "key", perDay(10), 0)
}
