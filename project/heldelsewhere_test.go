package project_test

import (
	"context"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// eachPair runs a test with two limiters on one store, as two processes have them. settled waits until the store has what
// the one elsewhere has settled, and asked gets something when the one here has asked the store.
func eachPair(t *testing.T, limit project.Limit, test func(t *testing.T, here, elsewhere *project.Limiter, asked <-chan bool, settled func())) {
	for _, name := range []string{"SQLite", "Redis"} {
		t.Run(name, func(t *testing.T) {
			open := stores[name](t)
			near, far := noticed{open(), make(chan bool, 1)}, open()
			here, elsewhere := newLimiter(t, project.Config{Default: &limit, Store: near}), newLimiter(t, project.Config{Default: &limit, Store: far})
			test(t, here, elsewhere, near.asked, hidden.Of[accounts.Later](far).AwaitSettled)
		})
	}
}

// noticed is a store that says when it was asked.
type noticed struct {
	store.Store
	asked chan bool
}

func (n noticed) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	defer func() {
		select {
		case n.asked <- true:
		default:
		}
	}()
	return n.Store.Take(ctx, charges)
}

// What calls of another process have reserved comes back when they end: a denial says so, whatever the window is. What
// they have used does not.
func TestWhatOthersHaveReservedComesBack(t *testing.T) {
	for name, each := range map[string]project.Limit{
		"total": {Dollars: price.Dollar}, "day": {DollarsPerDay: price.Dollar}, "cut": {Dollars: price.Dollar, Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut},
	} {
		t.Run(name, func(t *testing.T) {
			eachPair(t, each, func(t *testing.T, here, elsewhere *project.Limiter, _ <-chan bool, settled func()) {
				all, _ := takeAll(t, elsewhere, mayCost("p"))
				none, d := takeAll(t, here, mayCost("p"))
				if s := d.Denying(); len(none) != 0 || !s.Held || s.Reserved != int64(96*cent) || d.RetryAfter != time.Second {
					t.Fatalf("%d calls have passed, and then %+v: %s", len(none), s, d.Reason())
				}
				for _, res := range all[1:] {
					res.CommitPriced(llm.Tokens{Input: 10, Output: 8192}, 12*cent)
				}
				settled()
				if _, d = takeAll(t, here, mayCost("p")); !d.Denying().Held || d.Denying().Reserved != int64(12*cent) {
					t.Errorf("of eight calls one is under way, and it says: %+v: %s", d.Denying(), d.Reason())
				}
				all[0].CommitPriced(llm.Tokens{Input: 10, Output: 8192}, 12*cent)
				settled()
				if _, d = takeAll(t, here, mayCost("p")); d.Denying().Held || d.Denying().Reserved != 0 || d.RetryAfter == time.Second {
					t.Errorf("nothing is reserved, and it says: %+v: %s", d.Denying(), d.Reason())
				}
			})
		})
	}
}

// A call that may wait waits for what calls of another process have reserved, and passes when they end.
func TestACallWaitsForWhatOthersHaveReserved(t *testing.T) {
	for name, each := range map[string]project.Limit{"total": {Dollars: price.Dollar}, "day": {DollarsPerDay: price.Dollar}} {
		t.Run(name, func(t *testing.T) {
			eachPair(t, each, func(t *testing.T, here, elsewhere *project.Limiter, asked <-chan bool, _ func()) {
				all, _ := takeAll(t, elsewhere, mayCost("p"))
				waits := make(chan error)
				go func() {
					c := mayCost("p")
					c.MaxWait = time.Hour
					res, _, err := here.Acquire(t.Context(), c)
					res.Cancel()
					waits <- err
				}()
				<-asked
				for _, res := range all {
					res.CommitPriced(llm.Tokens{Input: 10, Output: 100}, cent)
				}
				if err := <-waits; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What a large call has reserved is known although small calls, for which the limit has room in plenty, come before and
// after it: to the process that made it, and to others.
func TestLargeCallsAmongSmallOnesAreKnownToBeReserved(t *testing.T) {
	small, large := mayCost("p"), mayCost("p")
	small.Dollars, small.MostDollars = cent/10_000, cent/10_000
	large.MostDollars = 60 * cent
	eachPair(t, project.Limit{Dollars: price.Dollar}, func(t *testing.T, here, elsewhere *project.Limiter, _ <-chan bool, _ func()) {
		take := func(l *project.Limiter, c project.Call) project.Decision {
			_, d, err := l.Take(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for _, c := range []project.Call{small, small, large, small} {
			if d := take(elsewhere, c); !d.Allowed {
				t.Fatal(d.Reason())
			}
		}
		for name, l := range map[string]*project.Limiter{"here": here, "elsewhere": elsewhere} {
			for range 3 {
				if d := take(l, large); d.Allowed || !d.Denying().Held {
					t.Errorf("%s: another call has reserved most of it, and it says: %+v: %s", name, d.Denying(), d.Reason())
				}
			}
		}
	})
}
