package project_test

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// stores is where several limiters may count together: each returns what one of them
// needs.
var stores = map[string]func(t testing.TB) func() store.Store{
	"memory": func(testing.TB) func() store.Store {
		s := store.NewMemory()
		return func() store.Store { return s }
	},
	"SQLite": func(t testing.TB) func() store.Store {
		path := filepath.Join(t.TempDir(), "limits.db")
		return func() store.Store { return openSQLite(t, path) }
	},
	"Redis": func(t testing.TB) func() store.Store {
		url := redistest.New(t).URL()
		return func() store.Store { return openRedis(t, url) }
	},
}

// Limiters that share a store admit together exactly what one would, by every door.
func TestTogether(t *testing.T) {
	for name, shared := range stores {
		t.Run(name, func(t *testing.T) {
			open := shared(t)
			each := project.Limit{RequestsPerHour: 40, TokensPerDay: 1000}
			var limiters []*project.Limiter
			for range 3 {
				limiters = append(limiters, newLimiter(t, project.Config{Default: &each, Store: open()}))
			}
			var mu sync.Mutex
			passed := map[string]int{}
			var all sync.WaitGroup
			for worker := range 9 {
				l := limiters[worker%3]
				all.Go(func() {
					for i := range 30 {
						calls := map[string]project.Call{ // of 40 requests, or 1,000 tokens
							"one": {Project: "one"}, "three": {Project: "three", Requests: 3}, "seven": {Project: "seven", Estimated: 70},
						}
						for id, c := range calls {
							d, err := project.Decision{}, error(nil)
							if i%2 == 0 {
								d, err = l.Spend(t.Context(), c)
							} else {
								var res *project.Reservation
								res, d, err = l.Take(t.Context(), c)
								res.Commit(-1, -1)
							}
							if err != nil {
								t.Errorf("%s: %v", id, err)
							}
							if d.Allowed {
								mu.Lock()
								passed[id]++
								mu.Unlock()
							}
						}
					}
				})
			}
			all.Wait()
			if want := map[string]int{"one": 40, "three": 13, "seven": 14}; !maps.Equal(passed, want) {
				t.Errorf("passed: %v; want %v", passed, want)
			}
			for i, l := range limiters {
				for id, want := range map[string]map[string]int64{
					"one": {"hour": 0, "tokens-day": 1000}, "three": {"hour": 1, "tokens-day": 1000},
					"seven": {"hour": 26, "tokens-day": 20}, "nobody": {"hour": 40, "tokens-day": 1000},
				} {
					if left := left(t, l, id); !maps.Equal(left, want) {
						t.Errorf("limiter %d says that %s has %v left; want %v", i, id, left, want)
					}
				}
			}
			if err := limiters[0].Reset(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			use(t, limiters[1], "one", 40)
			if d := spend(t, limiters[2], project.Call{Project: "one"}); d.Allowed {
				t.Error("41 requests in an hour")
			}
		})
	}
}
