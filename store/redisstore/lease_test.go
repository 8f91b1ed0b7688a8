package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// opened returns a store in the server at a URL, which is closed when the test ends.
func opened(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	cfg.URL = url
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// leaser is a node with leases, beside a lender: the server's clock is the lender's, and stands
// still. Leases of a minute are open until they are ended.
type leaser struct {
	*leases
	testing.TB
}

func (d *lender) leaser(term time.Duration) *leaser {
	r := newRemote(d.client, d.namespace, patient, d.at.Load, nil)
	l := &leaser{newLeases(newFallback(r, Deny, nil, nil), r, term), d.TB}
	d.Cleanup(func() { l.leases.Close() })
	return l
}

// take takes n of a key, which must not fail. It reports whether it was taken from a lease.
func (l *leaser) take(key string, n int64, limits ...limit.Limit) (r store.Receipt, leased bool) {
	l.Helper()
	r, decisions, err := l.Take(l.Context(), []store.Charge{{Key: key, Limits: limits, N: n}})
	if err != nil || (r != nil) != store.Allowed(decisions) {
		l.Fatalf("take %d: %v, %+v, %v", n, r, decisions, err)
	}
	_, leased = r.(*leaseReceipt)
	return r, leased
}

// heat takes again and again until a take is from a lease. It returns the receipt of that take.
func (l *leaser) heat(limits ...limit.Limit) store.Receipt {
	l.Helper()
	for i := range hotTakes {
		r, leased := l.take("key", 1, limits...)
		if leased != (i == hotTakes-1) {
			l.Fatalf("take %d is from a lease: %v", i, leased)
		}
		if leased {
			return r
		}
	}
	return nil
}

// leaseOf returns the lease of a key, or nil.
func (l *leaser) leaseOf(key string) *lease {
	if s, ok := l.keys.Load(key); ok {
		return s.(*leasedKey).lease.Load()
	}
	return nil
}

// wantLeft fails the test unless an amount is left of the key for other nodes.
func (d *lender) wantLeft(want int64, when string, limits ...limit.Limit) {
	d.Helper()
	decisions, err := d.Peek(d.Context(), []store.Charge{{Key: "key", Limits: limits}})
	if err != nil {
		d.Fatal(err)
	}
	if got := store.Deciding(decisions).Remaining; got != want {
		d.Errorf("%s: %d are left; want %d", when, got, want)
	}
}

// leaseCount returns how many leases of the key the server knows.
func (d *lender) leaseCount() int {
	d.Helper()
	accounts, _, err := d.read(d.Context(), []store.Charge{{Key: "key"}})
	if err != nil {
		d.Fatal(err)
	}
	return len(accounts[0].leases)
}

// A slice of 160 is 10.
func TestHotKeyIsLeased(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		node.heat(l)
		for range 9 {
			d.wantLeft(160-7-10, "while a lease is spent", l)
			if _, leased := node.take("key", 1, l); !leased {
				d.Error("a lease is not spent")
			}
		}
		if _, leased := node.take("key", 1, l); !leased { // the next one
			d.Error("a hot key is not leased again")
		}
		d.wantLeft(160-17-10, "after the first lease was spent", l)
		if err := node.leases.Close(); err != nil {
			d.Error(err)
		}
		if d.leaseCount() > 0 {
			d.Error("a lease is open when its node is closed")
		}
		d.wantLeft(160-18, "when all was given back", l)
	})
}

// While no other node takes, Remaining in a decision is exact.
func TestRemainingWithLeases(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		for used := int64(1); used <= 160; used++ {
			_, decisions, err := node.Take(d.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
			if err != nil || !decisions[0].Allowed || decisions[0].Limit != l {
				d.Fatalf("take %d: %+v, %v", used, decisions, err)
			}
			if decisions[0].Used != used || decisions[0].Remaining != 160-used {
				d.Fatalf("%d are used and %d remain after %d of 160", decisions[0].Used, decisions[0].Remaining, used)
			}
		}
		_, decisions, err := node.Take(d.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
		if err != nil || decisions[0].Allowed || decisions[0].RetryAfter <= 0 || decisions[0].RetryAfter == limit.Never {
			d.Fatalf("after all: %+v, %v", decisions, err)
		}
	})
}

// A take from a lease is settled once, before or after the end of the lease.
func TestSettleWhatWasLeased(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		for _, after := range []bool{false, true} {
			for _, actual := range []int64{-1, 0, 1, 3, 4, 5, 9, 10, 11, 50} {
				if err := d.Reset(d.Context(), ""); err != nil {
					d.Fatal(err)
				}
				node := d.leaser(time.Minute)
				node.heat(l)
				r, leased := node.take("key", 4, l)
				if !leased {
					d.Fatal("a lease is not spent")
				}
				if after {
					node.isOver()
				}
				for _, n := range []int64{actual, 0, 20} {
					if err := node.Settle(d.Context(), r, []int64{n}); err != nil {
						d.Fatal(err)
					}
				}
				if node.leases.Close(); d.leaseCount() > 0 {
					d.Error("a lease is open when its node is closed")
				}
				used := int64(8 + 4)
				if actual >= 0 {
					used = 8 + actual
				}
				d.wantLeft(160-used, fmt.Sprintf("settled 4 to %d, after its end: %v", actual, after), l)
			}
		}
	})
}

// mute is a layer whose answers to settlements get lost while its flag is set.
type mute struct {
	layer
	lost atomic.Bool
}

func (m *mute) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if err := m.layer.Settle(ctx, r, actual); err != nil || !m.lost.Load() {
		return err
	}
	return fmt.Errorf("%w: no answer", ErrLost)
}

// Settling again after an error charges nothing twice.
func TestSettleWhatWasLeasedAgain(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		below := &mute{layer: node.remote}
		node.fallback.below = below
		r := node.heat(l)
		below.lost.Store(true)
		for range 3 {
			if err := node.Settle(d.Context(), r, []int64{31}); !errors.Is(err, ErrLost) {
				d.Fatal(err)
			}
		}
		below.lost.Store(false)
		for range 2 {
			if err := node.Settle(d.Context(), r, []int64{31}); err != nil {
				d.Fatal(err)
			}
		}
		node.leases.Close()
		d.wantLeft(160-7-31, "after 31 were used", l)
	})
}

// Receipts of another node, or for another number of charges, change nothing.
func TestForeignLeaseReceipts(t *testing.T) {
	l := limit.New(160, time.Hour)
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	one, other := d.leaser(time.Minute), d.leaser(time.Minute)
	r := one.heat(l)
	for _, err := range []error{
		other.Settle(t.Context(), r, []int64{0}),
		one.Settle(t.Context(), r, []int64{0, 0}),
		one.Settle(t.Context(), r, nil),
	} {
		if !errors.Is(err, store.ErrReceipt) {
			t.Error(err)
		}
	}
	one.leases.Close()
	d.wantLeft(160-8, "after all", l)
}

// The leases of a node that was killed are charged in full when their time is over, and nothing
// else is.
func TestNodeThatDies(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		node.heat(l)
		d.wantLeft(160-7-10, "while it lives", l)
		d.pass(time.Minute - 1)
		if d.takes(0, l); d.leaseCount() != 1 {
			d.Error("its lease has ended too early")
		}
		d.pass(1)
		if d.takes(0, l); d.leaseCount() != 0 {
			d.Error("its lease has not ended")
		}
		d.pass(48 * time.Hour)
		d.wantRoom(160, "long after", l)
	})
}

// A lease whose time is over ends by itself.
func TestLeaseThatIsNotSpentComesBack(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		node.heat(l)
		node.isOver()
		if d.wantLeft(160-8, "after its time", l); d.leaseCount() > 0 {
			d.Error("a lease is open when its time is over")
		}
		if _, leased := node.take("key", 1, l); leased {
			d.Error("a key that has cooled down is leased")
		}
	})
}

// isOver moves the end of the key's lease to now.
func (l *leaser) isOver() {
	h := l.leaseOf("key")
	h.timer.Reset(0)
	<-h.done
}

// A lease whose answer comes too long after it was granted is not used.
func TestLeaseThatComesLate(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	l := limit.New(160, time.Hour)
	d := newLender(t, dialed(t, proxy.URL()))
	node := d.leaser(20 * time.Millisecond)
	node.mu.Lock()
	s := node.keyState("key")
	s.takes, s.amount = hotTakes, 10
	node.mu.Unlock()
	proxy.Delay(50 * time.Millisecond)
	if r, leased := node.take("key", 1, l); leased || r == nil {
		t.Error("a lease was spent when its time was over")
	}
}

// If a caller leaves while it acquires a lease, nothing stays leased.
func TestLeaveWhileALeaseIsAskedFor(t *testing.T) {
	l := limit.New(160, time.Hour).Using(limit.FixedWindow)
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	d := newLender(t, dialed(t, server.URL()))
	r := newRemote(dialed(t, proxy.URL()), d.namespace, 5*time.Second, d.at.Load, nil)
	node := &leaser{newLeases(newFallback(r, Deny, nil, nil), r, time.Minute), t}
	t.Cleanup(func() { node.leases.Close() })
	for range hotTakes - 1 {
		node.take("key", 1, l)
	}
	proxy.StallAnswers()
	ctx, leave := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	asked.Go(func() {
		if r, _, err := node.Take(ctx, []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}}); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", r, err)
		}
	})
	testkit.Eventually(t, "a lease", func() bool { return d.leaseCount() == 1 })
	leave()
	asked.Wait()
	proxy.Heal()
	testkit.Eventually(t, "the end of a lease that nobody has", func() bool { return d.leaseCount() == 0 })
	d.wantLeft(160-7, "when all has left", l)
}

// If nodes are closed while they acquire leases, nothing stays leased.
func TestCloseWhileLeasing(t *testing.T) {
	l := limit.New(1_000_000, time.Hour)
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	for range 30 {
		node := d.leaser(time.Minute)
		var takers sync.WaitGroup
		for range 4 {
			takers.Go(func() {
				for {
					_, _, err := node.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
					if errors.Is(err, store.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		node.take("key", 1, l)
		if err := node.leases.Close(); err != nil {
			t.Error(err)
		}
		takers.Wait()
		if d.leaseCount() > 0 {
			t.Fatal("a lease is open when its node is closed")
		}
	}
}

// A lease whose answer comes after its node was closed is given back.
func TestCloseWhileALeaseIsAskedFor(t *testing.T) {
	l := limit.New(160, time.Hour)
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	d := newLender(t, dialed(t, server.URL()))
	r := newRemote(dialed(t, proxy.URL()), d.namespace, 5*time.Second, d.at.Load, nil)
	node := &leaser{newLeases(newFallback(r, Deny, nil, nil), r, time.Minute), t}
	for range hotTakes - 1 {
		node.take("key", 1, l)
	}
	proxy.Delay(100 * time.Millisecond)
	used := int64(hotTakes - 1)
	var asked sync.WaitGroup
	asked.Go(func() {
		r, _, err := node.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
		if r != nil { // the node was not closed in time
			used++
		} else if !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	testkit.Eventually(t, "a lease", func() bool { return d.leaseCount() == 1 })
	if err := node.leases.Close(); err != nil {
		t.Error(err)
	}
	asked.Wait()
	if d.wantLeft(160-used, "when all was given back", l); d.leaseCount() > 0 {
		t.Error("a lease is open when its node is closed")
	}
}

func TestLeasesAreClosed(t *testing.T) {
	l := limit.New(160, time.Hour)
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	node := d.leaser(time.Minute)
	r := node.heat(l)
	for range 2 {
		if err := node.leases.Close(); err != nil {
			t.Error(err)
		}
	}
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}}
	if _, _, err := node.Take(t.Context(), charges); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	if _, err := node.Peek(t.Context(), charges); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	for _, actual := range []int64{0, 2} {
		if err := node.Settle(t.Context(), r, []int64{actual}); !errors.Is(err, store.ErrClosed) {
			t.Error(actual, err)
		}
	}
	d.wantLeft(160-8, "after all", l)
}

// While Redis is lost a lease can be used. Then the mode decides.
func TestLeaseWhileRedisIsLost(t *testing.T) {
	server := redistest.New(t)
	for mode, wants := range map[StoreLoss]error{Deny: ErrLost, Allow: nil} {
		t.Run(string(mode), func(t *testing.T) {
			proxy := redistest.NewProxy(t, server.Addr)
			s := opened(t, proxy.URL(), Config{Namespace: t.Name(), Lease: time.Minute, Timeout: 2 * time.Second, OnStoreLoss: mode})
			node := &leaser{s.top.(*leases), t}
			l := limit.New(160, 1000*time.Hour)
			node.heat(l)
			proxy.Cut()
			for range 9 {
				if _, leased := node.take("key", 1, l); !leased {
					t.Error("a lease is not spent")
				}
			}
			if _, _, err := node.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}}); !errors.Is(err, wants) {
				t.Errorf("%v; want %v", err, wants)
			}
			proxy.Heal()
		})
	}
}

// Redis is charged for what was admitted without it before anything is leased.
func TestDebtsComeBeforeLeases(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	d := newLender(t, dialed(t, proxy.URL()))
	r := newRemote(d.client, d.namespace, 200*time.Millisecond, d.at.Load, nil)
	node := &leaser{newLeases(newFallback(r, Allow, nil, nil), r, time.Minute), t}
	t.Cleanup(func() { node.leases.Close() })
	l := limit.New(160, time.Hour).Using(limit.FixedWindow)
	proxy.Cut()
	for range hotTakes - 1 {
		if r, _ := node.take("key", 40, l); r == nil {
			t.Fatal("nothing is allowed")
		}
	}
	proxy.Heal()
	awaitHealed(r.link)
	if r, leased := node.take("key", 1, l); r != nil {
		t.Errorf("1 passes after 280 of 160, from a lease: %v", leased)
	}
}

// A charge of several keys is taken from leases if all of them are leased, and otherwise from none.
func TestLeasesOfSeveralKeys(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		node.heat(l)
		left := func() int64 { return node.leaseOf("key").left.Load() }
		both := func(n, m int64) []store.Charge {
			return []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}, {Key: "other", Limits: []limit.Limit{l}, N: m}}
		}
		for _, test := range []struct {
			n, m   int64
			passes bool
			from   int64 // of the lease
		}{
			{1, 1, true, 0},
			{2, 161, false, 0},
			{2, 159, true, 0},
			{2, 1, false, 0},
		} {
			before := left()
			r, decisions, err := node.Take(d.Context(), both(test.n, test.m))
			if err != nil || (r != nil) != test.passes || len(decisions) != 2 {
				d.Fatalf("take %d and %d: %v, %+v, %v", test.n, test.m, r, decisions, err)
			}
			if got := before - left(); got != test.from {
				d.Errorf("take %d and %d: %d of the lease", test.n, test.m, got)
			}
		}
		d.wantLeft(160-7-10-3, "beside the lease", l)
		if err := node.Reset(d.Context(), ""); err != nil {
			d.Fatal(err)
		}
		for range hotTakes {
			if r, _, err := node.Take(d.Context(), both(1, 1)); r == nil || err != nil {
				d.Fatal(r, err)
			}
		}
		r, _, err := node.Take(d.Context(), both(3, 2))
		if receipt, ok := r.(*leaseReceipt); !ok || err != nil || len(receipt.parts) != 2 {
			d.Fatal(r, err)
		}
		if err := node.Settle(d.Context(), r, []int64{1, 2}); err != nil {
			d.Fatal(err)
		}
		node.leases.Close()
		d.wantLeft(160-9, "after all", l)
	})
}

// Limits that change end their lease.
func TestLimitsChangeUnderALease(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		r := node.heat(l)
		more := l.WithCount(320).WithBurst(320)
		if _, leased := node.take("key", 1, more); leased {
			d.Error("a lease of one limit is spent for another")
		}
		if err := node.Settle(d.Context(), r, []int64{3}); err != nil {
			d.Error(err)
		}
		node.leases.Close()
		d.wantLeft(320-11, "after all", more)
	})
}

// Other nodes may know new limits first: what was leased of the old ones counts.
func TestLimitsChangeElsewhere(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		node.heat(l)
		more := l.WithCount(320).WithBurst(320)
		d.wantRoom(320-7-10, "beside a lease", more)
		for range 9 {
			if _, leased := node.take("key", 1, l); !leased {
				d.Fatal("a lease is not spent")
			}
		}
		node.leases.Close()
		if d.takes(1, more) {
			d.Error("1 passes after 320")
		}
	})
}

func TestResetEndsLeases(t *testing.T) {
	ofEvery(t, 160, func(d *lender, l limit.Limit) {
		node := d.leaser(time.Minute)
		r := node.heat(l)
		if err := node.Reset(d.Context(), "k"); err != nil {
			d.Fatal(err)
		}
		if node.leaseOf("key") != nil || d.leaseCount() > 0 {
			d.Error("a lease is open after a reset")
		}
		if err := node.Settle(d.Context(), r, []int64{0}); err != nil {
			d.Error(err)
		}
		d.wantRoom(160, "after a reset", l)
	})
}

func TestWhatIsLeased(t *testing.T) {
	const term = 100 * time.Millisecond
	start := time.Now()
	type step struct {
		at        time.Duration
		n, leased int64
	}
	repeat := func(n int, s step, each time.Duration) (steps []step) {
		for range n {
			steps = append(steps, s)
			s.at += each
		}
		return steps
	}
	l := limit.New(1600, time.Hour)
	for _, test := range []struct {
		name   string
		limits []limit.Limit
		steps  []step
	}{
		{"twice what was taken", []limit.Limit{l}, append(repeat(7, step{0, 1, 0}, time.Millisecond), step{10 * time.Millisecond, 1, 16})},
		{"a sixteenth", []limit.Limit{l}, append(repeat(7, step{0, 20, 0}, 0), step{0, 20, 100})},
		{"of the smallest", []limit.Limit{l, limit.New(320, time.Hour)}, append(repeat(7, step{0, 5, 0}, 0), step{0, 5, 20})},
		{"too small for two", []limit.Limit{l}, repeat(20, step{0, 51, 0}, 0)},
		{"too few", []limit.Limit{l}, repeat(40, step{0, 1, 0}, term/6)},
		{"few, long ago", []limit.Limit{l}, append(repeat(7, step{0, 1, 0}, 0), step{time.Hour, 1, 0})},
		{"a short period", []limit.Limit{l, limit.New(1600, 2*term-1)}, repeat(20, step{0, 1, 0}, 0)},
		{"a period long enough", []limit.Limit{limit.New(1600, 2*term)}, append(repeat(7, step{0, 1, 0}, 0), step{0, 1, 16})},
		{"a small limit", []limit.Limit{limit.New(15, time.Hour)}, repeat(20, step{0, 1, 0}, 0)},
		{"no limits", nil, repeat(20, step{0, 1, 0}, 0)},
		{"nothing", []limit.Limit{l}, repeat(20, step{0, 0, 0}, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			leases := newLeases(newFallback(nil, Deny, nil, nil), nil, term)
			for i, s := range test.steps {
				wanted, spent := leases.countTakes([]store.Charge{{Key: "key", Limits: test.limits, N: s.n}}, start.Add(s.at))
				var leased int64
				for _, w := range wanted {
					leased += w.N
				}
				if leased != s.leased || len(spent) > 0 {
					t.Fatalf("step %d (%+v): %d are leased", i, s, leased)
				}
			}
		})
	}
}

// The number of keys whose takes are counted is bounded.
func TestWatchedKeysAreBounded(t *testing.T) {
	leases := newLeases(newFallback(nil, Deny, nil, nil), nil, time.Second)
	limits := []limit.Limit{limit.PerHour(1000)}
	for i := range 3 * maxKeyStates {
		leases.countTakes([]store.Charge{{Key: fmt.Sprint(i), Limits: limits, N: 1}}, time.Now())
		if leases.keyCount > maxKeyStates {
			t.Fatalf("%d keys are watched", leases.keyCount)
		}
	}
	n := 0
	leases.keys.Range(func(any, any) bool { n++; return true })
	if n != leases.keyCount {
		t.Errorf("%d keys are watched, and %d are counted", n, leases.keyCount)
	}
}

// A take from several leases that fails leaves no trace in a lease that ends meanwhile. A regression:
// the lease was charged for amounts that no caller had got.
func TestLeaseEndsWhileItIsTakenFrom(t *testing.T) {
	node := newLeases(newFallback(nil, Deny, nil, nil), nil, time.Minute)
	limits := []limit.Limit{limit.PerHour(1600)}
	var charges []store.Charge
	for i := range 2000 { // many, so that it takes long to find that the last is not leased
		c := store.Charge{Key: fmt.Sprint("key ", i), Limits: limits, N: 1}
		h := &lease{charge: c, until: time.Now().Add(time.Minute), timer: time.NewTimer(time.Minute)}
		h.charge.N = 100
		h.left.Store(100)
		node.keyState(c.Key).lease.Store(h)
		charges = append(charges, c)
	}
	charges = append(charges, store.Charge{Key: "another", Limits: limits, N: 1})
	first := node.keyState("key 0")
	lease := first.lease.Load()

	var ender sync.WaitGroup
	ender.Go(func() {
		for lease.left.Load() == 100 {
			runtime.Gosched()
		}
		node.mu.Lock()
		defer node.mu.Unlock()
		node.retire(first)
	})
	for lease.left.Load() >= 0 {
		if r, _ := node.takeLocally(charges, time.Now()); r != nil {
			t.Error("what is not leased was spent")
		}
	}
	ender.Wait()
	if lease.spent != 0 {
		t.Errorf("a lease is charged for %d; want 0: all went back", lease.spent)
	}
}

// Nodes that take from several keys at once, settle, end their leases and are closed lose nothing
// and admit nothing twice, exactly, whether the limit is used up or not.
func TestLeasesAtOnce(t *testing.T) {
	for _, takes := range []int{75, 150} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) { leasesAtOnce(t, takes) })
	}
}

func leasesAtOnce(t *testing.T, takes int) {
	ofEvery(t, 1600, func(d *lender, l limit.Limit) {
		var used, leased atomic.Int64
		var nodes sync.WaitGroup
		for n := range uint64(3) {
			node := d.leaser(20 * time.Millisecond)
			var takers sync.WaitGroup
			for i := range uint64(3) {
				random := rand.New(rand.NewPCG(n, i))
				takers.Go(func() { used.Add(d.spendSome(node, l, takes, random, &leased)) })
			}
			nodes.Go(func() {
				takers.Wait()
				if err := node.leases.Close(); err != nil {
					d.Error(err)
				}
			})
		}
		nodes.Wait()
		if d.leaseCount() > 0 {
			d.Error("a lease is open when all nodes are closed")
		}
		d.wantLeft(max(1600-used.Load(), 0), fmt.Sprint("after ", leased.Load(), " from leases"), l)
		if leased.Load() == 0 { // on a quiet machine most takes; on a busy one few keys are hot
			d.Error("nothing was taken from leases")
		}
	})
}

// spendSome takes some times, and returns what was used in all.
func (d *lender) spendSome(node *leaser, l limit.Limit, takes int, random *rand.Rand, leased *atomic.Int64) (used int64) {
	for range takes {
		n := 1 + random.Int64N(2)
		charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}}
		if random.IntN(4) == 0 {
			charges = append(charges, store.Charge{Key: "other", Limits: []limit.Limit{limit.PerHour(1 << 40)}, N: 1})
		}
		r, decisions, err := node.Take(d.Context(), charges)
		if err != nil || (r != nil) != store.Allowed(decisions) {
			d.Errorf("%v, %+v, %v", r, decisions, err)
			return used
		}
		if r == nil {
			continue
		}
		if _, ok := r.(*leaseReceipt); ok {
			leased.Add(1)
		}
		actual := n
		if l.Algorithm() > limit.LeakyBucket || random.IntN(2) == 0 { // of a bucket, refunds do not add up
			actual = n + random.Int64N(2)
		}
		if err := node.Settle(d.Context(), r, slices.Repeat([]int64{actual}, len(charges))); err != nil {
			d.Error(err)
		}
		used += actual
	}
	return used
}

// Nodes with leases that take as much as they can admit exactly the limit.
func TestLeasesAdmitTheLimit(t *testing.T) {
	server := redistest.New(t)
	for _, l := range []limit.Limit{
		limit.New(3200, 10000*time.Hour), // so that a bucket does not drain meanwhile
		limit.New(3200, 1000*time.Hour).Anchored(),
		limit.New(3200, 1000*time.Hour).Using(limit.SlidingLog),
	} {
		t.Run(l.String(), func(t *testing.T) {
			var admitted, leased atomic.Int64
			var takers sync.WaitGroup
			var nodes []*Store
			charges := []store.Charge{{Key: "hot", Limits: []limit.Limit{l}, N: 1}}
			for range 3 {
				s := opened(t, server.URL(), Config{Namespace: t.Name(), Lease: 10 * time.Second, Timeout: 10 * time.Second})
				nodes = append(nodes, s)
				for range 4 {
					takers.Go(func() {
						for range 400 {
							r, _, err := s.Take(t.Context(), charges)
							if err != nil {
								t.Error(err)
								return
							}
							if r != nil {
								admitted.Add(1)
							}
							if _, ok := r.(*leaseReceipt); ok {
								leased.Add(1)
							}
						}
					})
				}
			}
			takers.Wait()
			for _, s := range nodes {
				s.Close()
			}
			if leased.Load() < 1000 {
				t.Errorf("%d were taken from leases; want most of 3200", leased.Load())
			}
			left, err := opened(t, server.URL(), Config{Namespace: t.Name(), Timeout: 10 * time.Second}).Peek(t.Context(), charges)
			if err != nil || left[0].Remaining+admitted.Load() != 3200 {
				t.Errorf("%d were admitted, %+v, %v", admitted.Load(), left, err)
			}
		})
	}
}

// What nodes have leased and not used is idle: at most a sixteenth of the limit for each node.
func TestIdleLeases(t *testing.T) {
	const nodes, count = 4, 16_000
	for _, each := range []int64{1, 10, 100} { // at a time
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			l := limit.New(count, time.Hour)
			d := newLender(t, dialed(t, redistest.New(t).URL()))
			var all []*leaser
			for range nodes {
				all = append(all, d.leaser(time.Minute))
			}
			var idle, most, takes int64
			for used := int64(0); used < count*3/4; used += each {
				all[takes%nodes].take("key", each, l)
				var left int64
				for _, node := range all {
					if h := node.leaseOf("key"); h != nil {
						left += h.left.Load()
					}
				}
				idle, most, takes = idle+left, max(most, left), takes+1
			}
			t.Logf("%d nodes, takes of %d: %.2f%% of the limit is idle, at most %.2f%%",
				nodes, each, 100*float64(idle)/float64(takes*count), 100*float64(most)/count)
			if most > nodes*count/maxSlice {
				t.Errorf("%d of %d are idle at %d nodes", most, count, nodes)
			}
		})
	}
}
