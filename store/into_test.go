package store_test

import (
	"context"
	"fmt"
	"slices"
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

// intoLimits are those among which the keys of a test choose. Some of them are the
// same limit with another count, or in another order.
var intoLimits = append(spendLimits,
	[]limit.Limit{limit.PerDay(25).Anchored(), limit.PerMinute(9).Using(limit.SlidingLog)},
	[]limit.Limit{limit.PerMinute(12).Using(limit.SlidingLog), limit.PerDay(15).Anchored()},
	[]limit.Limit{limit.PerMinute(6).Using(limit.FixedWindow), limit.PerDay(20).Anchored(), limit.PerDay(20).Anchored()},
	[]limit.Limit{limit.PerHour(12).WithBurst(4), limit.PerMinute(9)},
)

// Whatever happens, on whatever clock, TakeInto, PeekInto and SettleHold say what
// the plain steps do. SettleHold does not look at the clock: that makes no difference
// if the clock goes on and the limits of a key stay, and otherwise the store hears of
// the time just before it.
func TestIntoIsPlain(t *testing.T) {
	keys := []string{"a", "b", "p/a/requests", "p/a/tokens", "p/b/requests"} // none begins another
	others := prepare(t, "any", 1, windows(1, 1<<40)...)
	for _, wild := range []bool{false, true} {
		t.Run(fmt.Sprintf("wild=%v", wild), func(t *testing.T) {
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
				if wild {
					amount = rapid.Int64Range(0, 10)
					move = rapid.OneOf(move, rapid.Int64Range(-int64(2*time.Minute), 0))
				}
				ctx := context.Background()
				for range rapid.IntRange(1, 60).Draw(t, "steps") {
					by := move.Draw(t, "time")
					if by < 0 { // or nobody knows whether what is full now was forgotten before
						plain.forgetFull(func(key string) { m.Reset(ctx, key) })
					}
					now += by
					var charges []store.Charge
					var amounts []int64
					for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, len(keys), rapid.ID).Draw(t, "keys") {
						n := amount.Draw(t, "n")
						if wild || limits[key] == nil {
							limits[key] = rapid.SampledFrom(intoLimits).Draw(t, "limits")
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
						if r.amounts = amounts; r.plain != nil {
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
						if wild {
							m.Peek(ctx, open[i].plain.charges)
							plain.peek(open[i].plain.charges)
						}
						err = m.Settle(ctx, open[i].receipt, actual)
						plain.settle(open[i].plain, actual)
						open = slices.Delete(open, i, i+1)
					case "peek":
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
