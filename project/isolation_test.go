package project_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// quietly makes the calls of a project that is sometimes at its limit, and returns
// what became of each, and when. Some of them wait, if any should.
func quietly(l *project.Limiter, waits bool) (trace []string) {
	start := time.Now()
	for i := range 150 {
		time.Sleep(700 * time.Millisecond)
		c := project.Call{Project: "quiet", Estimated: i % 7}
		var d project.Decision
		var err error
		switch {
		case i%5 == 4 && waits:
			ctx, cancel := testkit.WithHiddenTimeout(context.Background(), 3*time.Second)
			res, said, failed := l.Acquire(ctx, c)
			if i%2 == 0 {
				res.Cancel()
			}
			d, err = said, failed
			cancel()
		case i%5 >= 3:
			res, said, failed := l.Take(context.Background(), c)
			res.Commit(i%3, i%4)
			d, err = said, failed
		default:
			d, err = l.Spend(context.Background(), c)
		}
		at := fmt.Sprintf("call %d at %v: %t, %q, %v, %v:", i, time.Since(start), d.Allowed, d.Limit, d.RetryAfter, err)
		for _, s := range d.Windows() {
			at += fmt.Sprintf(" %s %d %v %v", s.Window.Name, s.Remaining, s.RetryAfter, s.ResetAfter)
		}
		trace = append(trace, at)
	}
	return trace
}

// loudly makes a hundred times as many calls as a project may, of every kind, until
// ctx ends.
func loudly(ctx context.Context, l *project.Limiter) {
	c := project.Call{Project: "loud", Estimated: 5}
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			for time.Sleep(time.Duration(i) * 7 * time.Millisecond); ctx.Err() == nil; time.Sleep(70 * time.Millisecond) {
				l.Spend(ctx, c)
				res, _, _ := l.Take(ctx, c)
				res.Cancel()
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				within, cancel := testkit.WithHiddenTimeout(ctx, time.Duration(100+i)*7*time.Millisecond)
				res, _, _ := l.Acquire(within, c)
				res.Commit(9, 9)
				cancel()
			}
		})
	}
	all.Wait()
}

// A project at a hundred times its limit changes nothing for another: neither what
// is admitted, nor its answer, nor how long it waits.
func TestIsolation(t *testing.T) {
	each := project.Limit{RequestsPerMinute: 60, RequestsPerHour: 100, TokensPerMinute: 200}
	for _, name := range []string{"memory", "another store"} {
		t.Run(name, func(t *testing.T) {
			wantIsolation(t, true, func(t *testing.T) *project.Limiter {
				return newLimiter(t, kinds[name](t, project.Config{Default: &each}))
			})
		})
	}
	t.Run("a store that is far", func(t *testing.T) {
		wantIsolation(t, false, func(t *testing.T) *project.Limiter { // how long it waits is a little at random
			return newLimiter(t, project.Config{Default: &each, Store: far{store.NewMemory()}})
		})
	})
}

func wantIsolation(t *testing.T, waits bool, create func(t *testing.T) *project.Limiter) {
	var alone, beside []string
	synctest.Test(t, func(t *testing.T) {
		l := create(t)
		alone = quietly(l, waits)
	})
	synctest.Test(t, func(t *testing.T) {
		l := create(t)
		ctx, cancel := context.WithCancel(context.Background())
		var loud sync.WaitGroup
		loud.Go(func() { loudly(ctx, l) })
		beside = quietly(l, waits)
		cancel()
		loud.Wait()
	})
	denied := 0
	for i := range alone {
		if alone[i] != beside[i] {
			t.Fatalf("alone:  %s\nbeside: %s", alone[i], beside[i])
		}
		if strings.Contains(alone[i], "false") {
			denied++
		}
	}
	if denied < 10 || denied > 140 {
		t.Errorf("%d of %d calls were denied: that shows little", denied, len(alone))
	}
}

// Ids that look alike are different projects: what one uses or resets is its own.
func TestIDsDoNotCollide(t *testing.T) {
	ids := []string{"a", "a%2Fb", "a%252Fb", "a%2Frequests", "a.requests", "requests", "...", ".a", "%", "A", "**", "[a]", "{a}", "{b}"}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 100, TokensPerMinute: 100}}))
			want := map[string]int64{}
			for i, id := range ids {
				for n := range i + 1 {
					c := project.Call{Project: id, Estimated: n % 2} // through both ways to a key
					if d := spend(t, l, c); !d.Allowed {
						t.Fatalf("%q is denied", id)
					}
				}
				want[id] = int64(100 - (i + 1))
			}
			check := func(when string) {
				t.Helper()
				for _, id := range ids {
					if left := left(t, l, id); left["requests_per_minute"] != want[id] {
						t.Fatalf("%s: %q has %d left; want %d", when, id, left["requests_per_minute"], want[id])
					}
				}
			}
			check("before")
			for _, id := range ids {
				if err := l.Reset(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				want[id] = 100
				check(fmt.Sprintf("after a reset of %q", id))
			}
		})
	}
}
