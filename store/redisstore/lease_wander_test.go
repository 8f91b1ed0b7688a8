package redisstore

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// wanderer is a key whose clock goes back and forth, and whose limits change, while some of it is
// leased.
type wanderer struct {
	*rapid.T
	desk     *lender
	key      string
	limits   []limit.Limit // one of them at a time, of one shape, the largest last
	now      limit.Limit
	forward  int64 // all steps forward
	passed   []spending
	receipts []store.Receipt // of each of them; nil: it was settled, or spent from a lease
	leases   []*wandererLease
}

type wandererLease struct {
	name        string
	limit       limit.Limit
	n, left     int64
	since, term int64 // by the steps forward
	ended       bool  // its node spends no more of it
	charged     bool  // by the server
}

// However the clock goes, limits change and leases end or do not, no more is used than the largest
// of the limits allows in the time that has passed, which is at least the sum of all steps forward.
// Each lease is charged once. And no call fails.
func TestLeasesWhileAllChanges(t *testing.T) {
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		w := &wanderer{T: t, desk: d, key: fmt.Sprint("key ", number)}
		kind := oneOf(t, "kind", "gcra", "token", "leaky", "fixed", "anchored", "calendar", "log", "counter")
		for _, count := range []int64{5, 10, 20} {
			w.limits = append(w.limits, limitOfEachKind(count, time.Hour)[kind])
			if l := w.limits[len(w.limits)-1]; l.Burst() != count {
				w.limits[len(w.limits)-1] = l.WithBurst(count)
			}
		}
		w.now = w.limits[1]
		d.at.Store(noon.UnixNano())
		steps := []func() error{w.take, w.take, w.take, w.lease, w.lease, w.spend, w.spend, w.end, w.settle, w.peek, w.change}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			w.pass()
			if err := oneOf(t, "step", steps...)(); err != nil {
				t.Fatal(err)
			}
			w.look()
		}
		w.check()
	})
}

func (w *wanderer) pass() {
	period := w.now.Period()
	by := oneOf(w.T, "by", 0, 0, 1, time.Second, period/20, period/3, period, -1, -period/20, -period/3, -period, -26*time.Hour)
	w.desk.pass(by)
	w.forward += max(int64(by), 0)
}

func (w *wanderer) charge(n int64) store.Charge {
	return store.Charge{Key: w.key, Limits: []limit.Limit{w.now}, N: n}
}

func (w *wanderer) n() int64 { return rapid.Int64Range(1, w.now.Burst()).Draw(w.T, "n") }

func (w *wanderer) take() error {
	n := w.n()
	r, _, err := w.desk.Take(w.Context(), []store.Charge{w.charge(n)})
	if r != nil {
		w.passed = append(w.passed, spending{w.forward, n})
		w.receipts = append(w.receipts, r)
	}
	return err
}

func (w *wanderer) lease() error {
	n, term := w.n(), oneOf(w.T, "term", time.Second, 30*time.Minute)
	name, _, err := w.desk.lease(w.Context(), w.charge(n), term)
	if name != "" {
		w.leases = append(w.leases, &wandererLease{name: name, limit: w.now, n: n, left: n, since: w.forward, term: int64(term)})
	}
	return err
}

// spend uses all of a lease whose time is not over by any clock.
func (w *wanderer) spend() error {
	for _, l := range w.leases {
		if !l.ended && l.left > 0 && w.forward < l.since+l.term && rapid.Bool().Draw(w.T, "this") {
			w.passed = append(w.passed, spending{w.forward, l.left})
			w.receipts = append(w.receipts, nil)
			l.left = 0
		}
	}
	return nil
}

func (w *wanderer) end() error {
	if len(w.leases) == 0 {
		return nil
	}
	l := oneOf(w.T, "lease", w.leases...)
	paid, err := w.desk.end(w.Context(), store.Charge{Key: w.key, Limits: []limit.Limit{l.limit}, N: l.n - l.left}, l.name)
	if paid != nil && l.charged {
		return fmt.Errorf("a lease was charged twice")
	}
	l.ended, l.charged = true, l.charged || paid != nil
	return err
}

// look fails if a lease that was charged is open again. A lease that was forgotten with a full key
// was not charged: it may be open once the clock goes back.
func (w *wanderer) look() {
	accounts, _, err := w.desk.read(w.Context(), []store.Charge{{Key: w.key}})
	if err != nil {
		w.Fatal(err)
	}
	a := accounts[0]
	for _, l := range w.leases {
		open := slices.ContainsFunc(a.leases, func(other storedLease) bool { return other.name == l.name })
		if open && l.charged {
			w.Fatal("a lease that was charged is open again")
		}
		l.charged = l.charged || !open && len(a.bytes) > 0
	}
}

func (w *wanderer) settle() error {
	i := slices.IndexFunc(w.receipts, func(r store.Receipt) bool { return r != nil })
	if i < 0 {
		return nil
	}
	actual := rapid.Int64Range(0, w.passed[i].n+1).Draw(w.T, "actual")
	err := w.desk.Settle(w.Context(), w.receipts[i], []int64{actual})
	w.passed[i].n, w.receipts[i] = min(w.passed[i].n, actual), nil
	return err
}

func (w *wanderer) peek() error {
	_, err := w.desk.Peek(w.Context(), []store.Charge{w.charge(w.n())})
	return err
}

func (w *wanderer) change() error {
	w.now = oneOf(w.T, "limit", w.limits...)
	return nil
}

// check checks every span of time.
func (w *wanderer) check() {
	l := w.limits[len(w.limits)-1]
	for last := range w.passed {
		sum := int64(0)
		for first := last; first >= 0; first-- {
			sum += w.passed[first].n
			if most := mostIn(l, w.passed[last].at-w.passed[first].at); sum > most {
				w.Fatalf("%v: %d were spent, which is more than %d: %v", l, sum, most, w.passed[first:last+1])
			}
		}
	}
}

// mostIn returns how much of a limit may pass in a span of time, wherever that begins.
func mostIn(l limit.Limit, span int64) int64 {
	windows := span/int64(l.Period()) + 1
	switch l.Algorithm() {
	case limit.SlidingLog:
		return l.Count() * windows
	case limit.FixedWindow, limit.SlidingCounter:
		return l.Count() * (windows + 1)
	default:
		drained := new(big.Int).Div(times(span, l.Count()), big.NewInt(int64(l.Period())))
		return l.Burst() + drained.Int64()
	}
}
