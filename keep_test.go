package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// underWay is a call in the naive model of slots.
type underWay struct {
	*ratelimit.Reservation
	project string
	tokens  int
	since   time.Time
	kept    bool
}

// slots returns how many slots a call has: one for ten minutes, and after that if Keep was called.
func (u *underWay) slots(now time.Time) int {
	if u.kept || now.Sub(u.since) < 10*time.Minute {
		return 1
	}
	return 0
}

// Calls with Keep have their slots and their tokens in flight until they end; other calls for ten minutes.
func TestKeepLikeTheNaiveBook(t *testing.T) {
	const ofModel, ofProject, inFlight = 6, 4, 400
	rounds := testkit.Rounds(500, 2000)
	everyLedger(t, quotas{"m": {MaxConcurrent: ofModel, MaxTokensInFlight: inFlight}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		random := rand.New(rand.NewPCG(1, 2))
		var calls []underWay
		denied := 0
		for range rounds {
			time.Sleep(time.Duration(random.IntN(30)) * time.Second)
			synctest.Wait()
			all, own, held, tokens := 0, 0, 0, random.IntN(150)
			project := string(rune('p' + random.IntN(2)))
			for _, c := range calls {
				n := c.slots(time.Now())
				all += n
				held += n * c.tokens
				if c.project == project {
					own += n
				}
			}
			if len(calls) > 0 && random.IntN(10) == 0 {
				i := random.IntN(len(calls))
				calls[i].Commit(1, 1)
				calls = append(calls[:i], calls[i+1:]...)
				continue
			}
			limits := only(projectLimits(slotsWindow(ofProject)))
			res, d := tryCall(t, rl, projectCall{Model: "m", Project: project, Limits: limits, Estimated: tokens})
			if want := all < ofModel && own < ofProject && held+tokens <= inFlight; d.Allowed != want {
				t.Fatalf("%d of %d, of the project %d of %d are under way, with %d and %d of %d tokens: %+v", all, ofModel, own, ofProject, held, tokens, inFlight, d)
			}
			if !d.Allowed {
				denied++
				continue
			}
			c := underWay{res, project, tokens, time.Now(), random.IntN(2) == 0}
			if c.kept {
				c.Keep()
			}
			calls = append(calls, c)
		}
		if denied < rounds/40 {
			t.Errorf("only %d were denied", denied)
		}
		for _, c := range calls {
			c.Cancel()
		}
		if left := remaining(t, rl, "p", only(projectLimits(slotsWindow(ofProject)))); left[0] != ofProject {
			t.Errorf("%d of %d places are left in the end", left, ofProject)
		}
	})
}

// A call that ends just as its slots are renewed leaves none behind.
func TestKeepEndsWhileItIsRenewed(t *testing.T) {
	const many = 100
	everyLedger(t, quotas{"m": {MaxConcurrent: many}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		c := projectCall{Model: "m", Project: "p", Limits: only(projectLimits(slotsWindow(many)))}
		for range testkit.Rounds(2, 5) {
			var group sync.WaitGroup
			for range many {
				res, d := tryCall(t, rl, c)
				if !d.Allowed {
					t.Fatalf("a place is not given back: %+v", d)
				}
				res.Keep()
				group.Go(func() {
					time.Sleep(10*time.Minute - 10*time.Second)
					res.Commit(1, 1)
				})
			}
			group.Wait()
			synctest.Wait()
		}
	})
}

// plain is a store as somebody else may write one: with the methods of a store alone, and receipts that cannot be compared.
type plain struct{ store.Store }

func (p plain) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	r, said, err := p.Store.Take(ctx, charges)
	return []store.Receipt{r}, said, err
}

func (p plain) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	return p.Store.Settle(ctx, r.([]store.Receipt)[0], actual)
}

// A call keeps its slot in any store, and gives it back when it ends.
func TestKeepInAPlainStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := onStore(t, plain{store.NewMemory()}, quotas{"m": {MaxConcurrent: 1}})
		res, _ := rl.TryAcquire("m", 1)
		res.Keep()
		time.Sleep(time.Hour)
		if _, d := rl.TryAcquire("m", 1); d.Allowed {
			t.Error("two are under way")
		}
		res.Cancel()
		if _, d := rl.TryAcquire("m", 1); !d.Allowed {
			t.Errorf("nothing is under way: %+v", d)
		}
	})
}

// A renewal that cannot ask the store is tried again. A renewal that is denied gives up.
func TestKeepWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newElsewhere()
		rl := onStore(t, s, quotas{"m": {MaxConcurrent: 1}})
		res, _ := rl.TryAcquire("m", 1)
		res.Keep()
		res.Keep()
		time.Sleep(9 * time.Minute)
		before := s.renewed()
		s.lose(errors.New("lost"))
		time.Sleep(55 * time.Second)
		if n := s.renewed() - before; n < 50 {
			t.Errorf("it was asked %d times", n)
		}
		s.lose(nil)
		time.Sleep(time.Hour)
		if _, d := rl.TryAcquire("m", 1); d.Allowed {
			t.Error("two are under way")
		}
		s.lose(errors.New("lost"))
		res.Cancel()
		s.lose(nil)
		res, d := rl.TryAcquire("m", 1)
		if !d.Allowed {
			t.Errorf("nothing is under way: %+v", d)
		}
		res.Keep()
		rl.Close()
		before = s.renewed()
		time.Sleep(time.Hour)
		if n := s.renewed() - before; n != 0 {
			t.Errorf("once it is closed, the store is asked %d times", n)
		}
	})
}

// Nothing refers to a call that has ended.
func TestKeepLetsGo(t *testing.T) {
	rl := onStore(t, newElsewhere(), quotas{"m": {MaxConcurrent: 1}})
	res, _ := rl.TryAcquire("m", 1)
	res.Keep()
	res.Commit(1, 1)
	ended := weak.Make(res)
	res = nil
	testkit.Eventually(t, "nothing refers to it", func() bool { // a goroutine that has just renewed it may, for a moment
		runtime.GC()
		return ended.Value() == nil
	})
}

// A call whose slots were reset while it kept them takes none of another call with it when it
// ends.
func TestKeepAndReset(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxConcurrent: 1}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		res, _ := rl.TryAcquire("m", 1)
		res.Keep()
		time.Sleep(10*time.Minute - 10*time.Second)
		synctest.Wait()
		rl.Reset("m")
		if _, d := rl.TryAcquire("m", 1); !d.Allowed {
			t.Errorf("it was forgotten: %+v", d)
		}
		res.Commit(1, 1)
		if _, d := rl.TryAcquire("m", 1); d.Allowed {
			t.Error("two are under way")
		}
	})
}

// Keep does nothing for a call that has no slots, or has ended, or was never admitted.
func TestKeepNothing(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 1}, "n": {MaxConcurrent: 1}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		(*ratelimit.Reservation)(nil).Keep()
		res, _ := rl.TryAcquire("m", 1)
		res.Keep()
		free, _ := rl.TryAcquire("unknown", 1)
		free.Keep()
		ended, _ := rl.TryAcquire("n", 1)
		ended.Cancel()
		ended.Keep()
		time.Sleep(time.Hour)
		if _, d := rl.TryAcquire("n", 1); !d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}
