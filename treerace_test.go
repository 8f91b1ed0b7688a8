package ratelimit_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// levelsOf is the limits of a tree of five levels, whose tightest is in the middle.
var levelsOf = map[string]project.Limit{
	"org":                  {DollarsPerMonth: 1000 * price.Dollar},
	"org/team":             {DollarsPerDay: 40 * price.Dollar, TokensPerDay: 1 << 40},
	"org/team/app":         {DollarsPerDay: 10 * price.Dollar, RequestsPerDay: 900}, // 300 calls of 3 cents, and a third of one
	"org/team/app/*":       {DollarsPerHour: 500 * price.Dollar},
	"org/team/app/alice/*": {RequestsPerHour: 5000},
}

// A thousand calls at once through five levels and a model are charged to every level or to none, never
// beyond a limit, and fill the tightest level to within one call: in memory, in one file, and from two
// limiters on one Redis.
func TestAThousandCallsThroughFiveLevels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.db")
	server := redistest.New(t)
	for name, open := range map[string]func() (*ratelimit.RateLimiter, error){
		"memory": func() (*ratelimit.RateLimiter, error) { return ratelimit.New() },
		"SQLite": func() (*ratelimit.RateLimiter, error) { return ratelimit.NewWithSQLite(file) },
		"Redis": func() (*ratelimit.RateLimiter, error) {
			s, err := redisstore.New(redisstore.Config{URL: server.URL(), Timeout: 20 * time.Second})
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { s.Close() })
			return ratelimit.NewWithStore(s, ratelimit.Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			limiters := []*ratelimit.RateLimiter{newTree(t, open)}
			if name != "memory" {
				limiters = append(limiters, newTree(t, open))
			}
			const cents = price.Dollar * 3 / 100
			var admitted atomic.Int64
			var wg sync.WaitGroup
			held := make(chan *ratelimit.Reservation, 1000)
			for i := range 1000 {
				wg.Go(func() {
					l := limiters[i%len(limiters)]
					res, d, err := l.TryAcquireCall(context.Background(), ratelimit.Call{
						Model: "m", Project: "org/team/app/alice/bot", Run: "r", Estimated: 10, Dollars: cents,
					})
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						admitted.Add(1)
						held <- res
					} else if d.Owner != "org/team/app" {
						t.Errorf("%s denies: %s", d.Owner, d.Reason())
					}
				})
			}
			wg.Wait()
			if n := admitted.Load(); n != 333 {
				t.Errorf("%d calls were admitted; want 333", n)
			}
			wantUsed(t, limiters[0], 333*cents)
			close(held)
			for res := range held {
				wg.Go(func() { res.CommitPriced(llm.Tokens{Input: 5, Output: 5}, cents/3) })
			}
			wg.Wait()
			for _, l := range limiters {
				settled(l)
			}
			wantUsed(t, limiters[len(limiters)-1], 333*cents/3)
		})
	}
}

// newTree returns a limiter with a model, the tree, and runs.
func newTree(t *testing.T, open func() (*ratelimit.RateLimiter, error)) *ratelimit.RateLimiter {
	t.Helper()
	l, err := open()
	if err == nil {
		t.Cleanup(func() { l.Close() })
		err = l.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 5000, MaxTPM: 1 << 30})
	}
	if err == nil {
		_, err = l.NewProjects(project.Config{Default: &project.Limit{}, Limits: levelsOf, Runs: project.RunLimit{Calls: 5000, Dollars: 100 * price.Dollar}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantUsed checks that every limit in dollars of the tree has used the same.
func wantUsed(t *testing.T, l *ratelimit.RateLimiter, want price.Amount) {
	t.Helper()
	d, err := l.Projects().PeekCall(t.Context(), project.Call{Project: "org/team/app/alice/bot", Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range d.Windows() {
		if s.Window.Unit != project.Dollars {
			continue
		}
		seen++
		if used := price.Amount(s.Window.Count - s.Remaining); used != want {
			t.Errorf("%s of %s has used %v; want %v", s.Window.Name, s.Owner, used, want)
		}
	}
	if seen != 5 {
		t.Errorf("%d limits in dollars", seen)
	}
}
