package storetest

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// bench is a store under test, with its clock. Any error of the store ends the test.
type bench struct {
	*testing.T
	store store.Store
	clock *clock
}

func newBench(t *testing.T, newStore opener) *bench {
	c := newClock()
	return &bench{t, newStore(t, c.now), c}
}

// charge returns n of a key, under limits.
func charge(key string, n int64, limits ...limit.Limit) store.Charge {
	return store.Charge{Key: key, Limits: limits, N: n}
}

func (b *bench) take(charges ...store.Charge) (store.Receipt, []limit.Decision) {
	b.Helper()
	r, decisions, err := b.store.Take(b.Context(), charges)
	if err != nil {
		b.Fatalf("take %s: %v", described(charges), err)
	}
	if allowed := store.Allowed(decisions); (r != nil) != allowed {
		b.Fatalf("take %s: allowed is %v, the receipt %v", described(charges), allowed, r)
	}
	return r, decisions
}

// mustTake takes what must be allowed.
func (b *bench) mustTake(charges ...store.Charge) store.Receipt {
	b.Helper()
	r, decisions := b.take(charges...)
	if r == nil {
		b.Fatalf("take %s is denied: %+v", described(charges), decisions)
	}
	return r
}

// mustNotTake takes what must be denied, and returns when to come back.
func (b *bench) mustNotTake(charges ...store.Charge) time.Duration {
	b.Helper()
	r, decisions := b.take(charges...)
	if r != nil {
		b.Fatalf("take %s is allowed: %+v", described(charges), decisions)
	}
	return store.Deciding(decisions).RetryAfter
}

func (b *bench) peek(charges ...store.Charge) []limit.Decision {
	b.Helper()
	decisions, err := b.store.Peek(b.Context(), charges)
	if err != nil {
		b.Fatalf("peek %s: %v", described(charges), err)
	}
	return decisions
}

// left returns what is left of a key's limit.
func (b *bench) left(key string, l limit.Limit) int64 {
	b.Helper()
	return b.peek(charge(key, 0, l))[0].Remaining
}

func (b *bench) wantLeft(want int64, key string, l limit.Limit, after string) {
	b.Helper()
	if got := b.left(key, l); got != want {
		b.Fatalf("%d of %v are left %s; want %d", got, l, after, want)
	}
}

func (b *bench) settle(r store.Receipt, actual ...int64) {
	b.Helper()
	if err := b.store.Settle(b.Context(), r, actual); err != nil {
		b.Fatalf("settle %d: %v", actual, err)
	}
}

func (b *bench) reset(prefix string) {
	b.Helper()
	if err := b.store.Reset(b.Context(), prefix); err != nil {
		b.Fatalf("reset %q: %v", prefix, err)
	}
}

// ofEvery runs a test for one limit of each kind, of count a minute or a day. The clock is just
// past a boundary of all of their windows.
func ofEvery(count int64, test func(b *bench, l limit.Limit)) func(t *testing.T, newStore opener) {
	return func(t *testing.T, newStore opener) {
		for name, r := range everyRule(count, time.Minute) {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, newStore)
				b.clock.set(midnight)
				test(b, r.Limit)
			})
		}
	}
}

// midnight is a nanosecond past midnight in Los Angeles.
var midnight = time.Date(2026, time.March, 14, 7, 0, 0, 1, time.UTC)
