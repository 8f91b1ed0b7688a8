package sqlitestore

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// The cached rows of a store never differ from the file, whatever changes it: two stores that share
// a file answer like one that reads it anew each time.
func TestKnownRows(t *testing.T) {
	dir, run := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		now := noon
		clock := func() int64 { return now }
		at := func(name string) *Store {
			s, err := Open(filepath.Join(dir, fmt.Sprint(run, name)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			s.clock, s.uptime = clock, nil
			return s
		}
		sharing, forgetful := []*Store{at("shared.db"), at("shared.db")}, at("other.db")
		var taken [][2]store.Receipt
		var by []*Store
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s := sharing[rapid.IntRange(0, 1).Draw(t, "store")]
			forgetful.batch.forget()
			now += rapid.SampledFrom([]int64{0, int64(time.Second), int64(time.Minute), -int64(time.Second), 3 << 36}).Draw(t, "time")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				if len(taken) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				actual := []int64{rapid.Int64Range(0, 6).Draw(t, "used")}
				if err := by[i].Settle(t.Context(), taken[i][0], actual); err != nil {
					t.Fatal(err)
				}
				if err := forgetful.Settle(t.Context(), taken[i][1], actual); err != nil {
					t.Fatal(err)
				}
			case 1:
				prefix := rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "prefix")
				if err := s.Reset(t.Context(), prefix); err != nil {
					t.Fatal(err)
				}
				if err := forgetful.Reset(t.Context(), prefix); err != nil {
					t.Fatal(err)
				}
			case 2:
				charges := drawCharge(t)
				got, err := s.Peek(t.Context(), charges)
				if err != nil {
					t.Fatal(err)
				}
				want, err := forgetful.Peek(t.Context(), charges)
				if err != nil {
					t.Fatal(err)
				}
				same(t, got, want)
			default:
				charges := drawCharge(t)
				r, got, err := s.Take(t.Context(), charges)
				if err != nil {
					t.Fatal(err)
				}
				other, want, err := forgetful.Take(t.Context(), charges)
				if err != nil {
					t.Fatal(err)
				}
				same(t, got, want)
				taken, by = append(taken, [2]store.Receipt{r, other}), append(by, s)
			}
		}
	})
}

func drawCharge(t *rapid.T) []store.Charge {
	l := rapid.SampledFrom([]limit.Limit{limit.PerMinute(5), limit.PerMinute(5).Using(limit.SlidingLog), limit.PerDay(9).Using(limit.SlidingLog)}).Draw(t, "limit")
	key := fmt.Sprint(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), l.Algorithm())
	return []store.Charge{{Key: key, Limits: []limit.Limit{l}, N: rapid.Int64Range(0, 4).Draw(t, "n")}}
}

func same(t *rapid.T, got, want []limit.Decision) {
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Fatal(diff)
	}
}
