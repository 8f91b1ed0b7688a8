package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// plainStore is a store with nothing but the steps that all stores have in common.
// It forgets nothing.
type plainStore struct {
	clock    func() int64
	accounts map[string]*limit.Account
}

type plainReceipt struct {
	charges  []store.Charge
	receipts []limit.Receipt
}

func (s *plainStore) of(charges []store.Charge) (list []accounts.Charge) {
	for _, c := range charges {
		if s.accounts[c.Key] == nil {
			s.accounts[c.Key] = new(limit.Account)
		}
		list = append(list, accounts.Charge{Account: s.accounts[c.Key], Limits: c.Limits, N: c.N})
	}
	return list
}

func (s *plainStore) take(charges []store.Charge) (*plainReceipt, []limit.Decision) {
	receipts, decisions := accounts.Take(s.of(charges), s.clock())
	if receipts == nil {
		return nil, decisions
	}
	return &plainReceipt{charges, receipts}, decisions
}

func (s *plainStore) peek(charges []store.Charge) []limit.Decision {
	return accounts.Peek(s.of(charges), s.clock())
}

func (s *plainStore) settle(r *plainReceipt, actual []int64) {
	accounts.Settle(s.of(r.charges), r.receipts, actual, s.clock())
}

// forgetFull forgets keys that are full, and tells of each.
func (s *plainStore) forgetFull(forgotten func(key string)) {
	for key, account := range s.accounts {
		if s.clock() >= account.FullAt() {
			delete(s.accounts, key)
			forgotten(key)
		}
	}
}

// takeLimits are those among which the keys of a test choose. Some of them are the
// same limit with another count, or in another order.
var takeLimits = append(spendLimits,
	[]limit.Limit{limit.PerDay(25).Anchored(), limit.PerMinute(9).Using(limit.SlidingLog)},
	[]limit.Limit{limit.PerMinute(12).Using(limit.SlidingLog), limit.PerDay(15).Anchored()},
	[]limit.Limit{limit.PerMinute(6).Using(limit.FixedWindow), limit.PerDay(20).Anchored(), limit.PerDay(20).Anchored()},
	[]limit.Limit{limit.PerHour(12).WithBurst(4), limit.PerMinute(9)},
)

// Whatever happens, on whatever clock, takes, peeks and settlements of prepared charges answer what the plain steps do.
// A settlement does not look at the clock: that makes no difference if the clock goes on and the limits of a key stay,
// and otherwise the store hears of the time just before it.
func TestMemoryIsPlain(t *testing.T) {
	keys := []string{"a", "b", "p/a/requests", "p/a/tokens", "p/b/requests"} // none begins another
	others := prepare(t, "any", 1, windows(1, 1<<40)...)
	for _, wild := range []string{"nothing", "clock", "limits"} {
		t.Run("wild "+wild, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				now := time.Date(2026, time.March, 14, 7, 0, 0, 0, time.UTC).UnixNano()
				clock := func() int64 { return now }
				m := newPreparedMemory(clock)
				plain := &plainStore{clock, map[string]*limit.Account{}}
				type taken struct {
					receipt store.Receipt
					plain   *plainReceipt
					amounts []int64
				}
				var open []taken
				limits := map[string][]limit.Limit{}
				move := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, int64(5*time.Second)), rapid.Int64Range(0, int64(2*time.Minute)), rapid.Int64Range(0, int64(30*time.Hour)))
				amount := rapid.Int64Range(1, 10) // a window that nothing was taken of may have begun since
				if wild != "nothing" {
					amount = rapid.Int64Range(0, 10)
				}
				if wild == "clock" {
					move = rapid.OneOf(move, rapid.Int64Range(-int64(2*time.Minute), 0))
				}
				ctx := context.Background()
				// bothHear lets both stores hear of the time and of limits by takes of nothing. After a peek nobody knows
				// what the logs of a key have dropped.
				bothHear := func(charges []store.Charge) {
					for _, c := range charges {
						c.N = 0
						m.Take(ctx, []store.Charge{c})
						plain.take([]store.Charge{c})
					}
				}
				for range rapid.IntRange(1, 60).Draw(t, "steps") {
					by := move.Draw(t, "time")
					if by < 0 { // or nobody knows whether what is full now was forgotten before, nor what a peek has dropped
						plain.forgetFull(func(key string) { m.Reset(ctx, key) })
						for key := range plain.accounts {
							bothHear([]store.Charge{charge(key, 0, limits[key]...)})
						}
					}
					now += by
					var charges []store.Charge
					var amounts []int64
					for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, len(keys), rapid.ID).Draw(t, "keys") {
						n := amount.Draw(t, "n")
						if wild == "limits" || limits[key] == nil {
							limits[key] = rapid.SampledFrom(takeLimits).Draw(t, "limits")
						}
						charges = append(charges, charge(key, n, limits[key]...))
						amounts = append(amounts, n)
					}
					var got, want []limit.Decision
					var err error
					do := rapid.SampledFrom([]string{"take", "take", "take", "settle", "settle", "peek", "reset", "idle"}).Draw(t, "do")
					switch do {
					case "take":
						var r taken
						r.receipt, got, err = m.Take(ctx, charges)
						r.plain, want = plain.take(charges)
						if (r.receipt == nil) != (r.plain == nil) {
							t.Fatalf("%+v: taken is %v; want %v", charges, r.receipt != nil, r.plain != nil)
						}
						r.amounts = amounts
						if r.plain != nil {
							open = append(open, r)
						}
					case "settle":
						if len(open) == 0 {
							continue
						}
						i := rapid.IntRange(0, len(open)-1).Draw(t, "of")
						actual := slices.Clone(open[i].amounts)
						for k := range actual {
							actual[k] = rapid.OneOf(rapid.Just(actual[k]), rapid.Int64Range(-1, 15)).Draw(t, "actual")
						}
						if wild != "nothing" {
							bothHear(open[i].plain.charges)
						}
						err = m.Settle(ctx, open[i].receipt, actual)
						plain.settle(open[i].plain, actual)
						open = slices.Delete(open, i, i+1)
					case "peek":
						if wild != "nothing" {
							bothHear(charges)
						}
						got, err = m.Peek(ctx, charges)
						want = plain.peek(charges)
					case "reset":
						for _, c := range charges {
							err = m.Reset(ctx, c.Key)
							delete(plain.accounts, c.Key)
						}
					case "idle": // keys that are full are forgotten meanwhile
						for i := range 100 {
							m.Spend(ctx, fmt.Append(nil, "other ", i), others, nil)
						}
					}
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s %+v at %d, %v:\ngot  %+v\nwant %+v", do, charges, now, err, got, want)
					}
				}
			})
		})
	}
}

// Takes, peeks and settlements of prepared charges allocate what they return, and what a receipt needs.
func TestMemoryAllocatesLittle(t *testing.T) {
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	charges := append(projectCharges(t, 1200), modelCharges(t, 1200)...)
	usedUp := prepare(t, "used up", 1, windows(1, 1)...)
	mustTakeOf(t, m, usedUp)
	denied := append(slices.Clone(charges), usedUp)
	actual := []int64{1, 1000, 1, 1300}
	ctx := t.Context()
	for range 3 { // so that there are accounts, of more than their first use
		m.Take(ctx, charges)
		m.Take(ctx, denied)
	}
	for name, call := range map[string]struct {
		most float64
		do   func()
	}{
		"take and settle": {3, func() {
			r, _, _ := m.Take(ctx, charges)
			m.Settle(ctx, r, actual)
		}},
		"take what is denied": {3, func() {
			if r, _, err := m.Take(ctx, denied); r != nil || err != nil {
				t.Error(r, err)
			}
		}},
		"peek": {2, func() { m.Peek(ctx, denied) }},
	} {
		for range 5000 { // until the logs have all of their room
			call.do()
			now += int64(time.Millisecond)
		}
		if n := testing.AllocsPerRun(100, call.do); n > call.most {
			t.Errorf("%s: %v allocations; want %v at most", name, n, call.most)
		}
	}
}

// A take reads the clock once. A settlement does not read it, unless there is a bucket.
func TestClockReadings(t *testing.T) {
	now, readings := time.Now().UnixNano(), 0
	m := store.NewMemoryAt(func() int64 { readings++; return now })
	wantReadings := func(after string, want int) {
		t.Helper()
		if readings != want {
			t.Errorf("%d readings of the clock after %s; want %d", readings, after, want)
		}
		readings = 0
	}
	charges := append(projectCharges(t, 1200), modelCharges(t, 1200)...)
	r := mustTakeOf(t, m, charges...)
	wantReadings("a take", 1)
	mustSettle(t, m, r, 1, 1000, 1, 1000)
	wantReadings("a settlement", 0)
	charges = []store.Charge{prepare(t, "bucket", 10, limit.PerMinute(60)), modelCharges(t, 1200)[0]}
	r = mustTakeOf(t, m, charges...)
	wantReadings("a take of a bucket", 1)
	mustSettle(t, m, r, 4, 1)
	wantReadings("a settlement of a bucket", 1)
}

// A call that has read the clock before another call decided, and decides after it, is
// no clock that went back: what was taken before can still be given back.
func TestClockReadBeforeTheLock(t *testing.T) {
	start := time.Now().UnixNano()
	var readings []int64
	m := store.NewMemoryAt(func() int64 {
		now := readings[0]
		readings = readings[1:]
		return start + now
	})
	c := prepare(t, "key", 3, limit.PerMinute(10).Using(limit.SlidingLog))
	readings = []int64{20}
	r := mustTakeOf(t, m, c)
	readings = []int64{10, 30} // it was read at 10; meanwhile the key was charged at 20
	mustTakeOf(t, m, c)
	mustSettle(t, m, r, 1)
	readings = []int64{40}
	if used := usedOf(t, m, c); used != 4 {
		t.Errorf("%d are used; want 1 and 3", used)
	}
	readings = []int64{10, 10} // this one has gone back
	r = mustTakeOf(t, m, c)
	readings = []int64{11}
	mustSettle(t, m, r, 2)
	if usedOf(t, m, c) != 6 {
		t.Error("what was taken after the clock went back is not settled")
	}
}

// Calls that name keys in opposite orders, and settle, reset and sweep meanwhile, do not
// wait for each other, and what they have used adds up.
func TestTakeAtOnce(t *testing.T) {
	m := store.NewMemory()
	const workers, calls = 6, 2000
	charges := append(projectCharges(t, 10), modelCharges(t, 10)...)
	ctx := t.Context()
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			mine := slices.Clone(charges)
			if worker%2 == 1 {
				slices.Reverse(mine)
			}
			for i := range calls {
				r, _, err := m.Take(ctx, mine)
				if r == nil || err != nil {
					t.Error(r, err)
				}
				m.Settle(ctx, r, []int64{2, 2, 2, 2})
				switch i % 100 {
				case 0:
					m.Reset(ctx, "another")
				case 1:
					m.Sweep()
				case 2:
					m.Peek(ctx, mine)
				}
			}
		})
	}
	all.Wait()
	for _, c := range charges {
		if used := usedOf(t, m, c); used != 2*workers*calls {
			t.Errorf("%d of %s are used; want %d", used, c.Key, 2*workers*calls)
		}
	}
}
