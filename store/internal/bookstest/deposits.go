package bookstest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// RunDeposits tests that stores keep takes as [accounts.Depository] promises: any store settles what
// another one has deposited, in the windows that it was taken from, and once.
func RunDeposits(t *testing.T, newStores Open) {
	for _, test := range []struct {
		name string
		run  func(v *vault)
	}{
		{"another store settles a deposit", settledElsewhere},
		{"a deposit is settled once, by whoever is first", settledAtOnce},
		{"windows that have passed are not corrected", settledAfterwards},
		{"a deposit without a take is booked once", depositedNothing},
		{"an id may be used again", depositedAgain},
		{"a deposit has a name", namedDeposits},
		{"old deposits are due, and those beyond a number", dueDeposits},
		{"bad deposits are refused", badDeposits},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClock()
			v := &vault{T: t, clock: c, open: newStores(t, c.now, 1000)}
			v.a, v.b = v.next(), v.next()
			test.run(v)
		})
	}
}

// vaultStore is a store that keeps books and deposits.
type vaultStore interface {
	Store
	accounts.Depository
}

// vault is two stores that share everything.
type vault struct {
	*testing.T
	clock *clock
	open  func() Store
	a, b  vaultStore
}

func (v *vault) next() vaultStore { return v.open().(vaultStore) }

// lasting are limits as projects have them.
var lasting = []limit.Limit{
	limit.PerDay(1000).Using(limit.SlidingLog), limit.PerMonth(5000).ResetMonthly(15, 0, time.UTC), limit.Total(9000), limit.PerMonth(7000).Using(limit.SlidingLog),
}

// left returns what is left of each of the lasting limits of a key.
func (v *vault) left(key string) (left []int64) {
	v.Helper()
	for _, l := range lasting {
		decisions, err := v.b.Peek(v.Context(), []store.Charge{charge(key, 0, l)})
		v.check(err)
		left = append(left, decisions[0].Remaining)
	}
	return left
}

func (v *vault) check(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

func (v *vault) wantLeft(key string, want ...int64) {
	v.Helper()
	if got := v.left(key); !slices.Equal(got, want) {
		v.Errorf("%s has %d left; want %d", key, got, want)
	}
}

// deposit takes 100 of the keys a/x and b/x in one store, and deposits the take.
func (v *vault) deposit(id string) {
	v.Helper()
	r, _, err := v.a.Take(v.Context(), []store.Charge{charge("a/x", 100, lasting...), charge("b/x", 100, lasting...)})
	if err != nil || r == nil {
		v.Fatal(r, err)
	}
	v.check(v.a.Deposit(v.Context(), id, r, []byte("note of "+id)))
}

// gone expects that there is no deposit.
func (v *vault) gone(id string) {
	v.Helper()
	if found, _, err := v.b.FindDeposit(v.Context(), id); err != nil || found != "" {
		v.Errorf("the deposit %q is there: %v", found, err)
	}
}

func settledElsewhere(v *vault) {
	v.deposit("lower")
	v.deposit("higher")
	v.wantLeft("a/x", 800, 4800, 8800, 6800)
	if id, note, err := v.b.FindDeposit(v.Context(), "lower"); id != "lower" || string(note) != "note of lower" || err != nil {
		v.Fatalf("%q, %q, %v", id, note, err)
	}
	v.clock.add(time.Hour)
	e := entry("acme", "m", "k", 7)
	for range 2 {
		v.check(v.b.SettleDeposit(v.Context(), "lower", []int64{30, -1}, &e))
		v.check(v.b.SettleDeposit(v.Context(), "higher", []int64{150, 100}, nil))
	}
	v.wantLeft("a/x", 820, 4820, 8820, 6820)
	v.wantLeft("b/x", 800, 4800, 8800, 6800)
	v.gone("lower")
	if got := totalOf(v, v.a, books.Query{}); got != e.Amounts {
		v.Errorf("%v is booked", got)
	}
}

func settledAtOnce(v *vault) {
	v.deposit("d")
	atOnce(func(random *rand.Rand) {
		s, n := []vaultStore{v.a, v.b, v.next()}[random.IntN(3)], 1+random.Int64N(200)
		e := entry("acme", "m", "k", n)
		if err := s.SettleDeposit(v.Context(), "d", []int64{n, n}, &e); err != nil {
			v.Error(err)
		}
	})
	booked := totalOf(v, v.a, books.Query{})
	used := booked[books.Input]
	if booked[books.Requests] != 1 {
		v.Errorf("%d calls are booked", booked[books.Requests])
	}
	v.wantLeft("a/x", 1000-used, 5000-used, 9000-used, 7000-used)
	v.wantLeft("b/x", 1000-used, 5000-used, 9000-used, 7000-used)
}

// A refund is for the windows that still have the take. A debt goes there as well.
func settledAfterwards(v *vault) {
	v.deposit("lower")
	v.deposit("higher")
	v.clock.add(25 * time.Hour) // into the next month of the calendar
	r, _, err := v.a.Take(v.Context(), []store.Charge{charge("a/x", 10, lasting...)})
	if err != nil || r == nil {
		v.Fatal(r, err)
	}
	v.check(v.b.SettleDeposit(v.Context(), "lower", []int64{0, 0}, nil))
	v.check(v.b.SettleDeposit(v.Context(), "higher", []int64{300, 300}, nil))
	v.wantLeft("a/x", 990, 4990, 8690, 6690)
	v.clock.add(40 * 24 * time.Hour)
	v.wantLeft("a/x", 1000, 5000, 8690, 7000)
	r, _, err = v.a.Take(v.Context(), []store.Charge{charge("a/x", 50, lasting...)})
	if err != nil || r == nil {
		v.Fatal(r, err)
	}
	v.check(v.a.Deposit(v.Context(), "later", r, nil))
	v.clock.add(35 * 24 * time.Hour)
	v.check(v.b.SettleDeposit(v.Context(), "later", []int64{10}, nil))
	v.wantLeft("a/x", 1000, 5000, 8680, 7000)
}

func depositedNothing(v *vault) {
	v.check(v.a.Deposit(v.Context(), "d", nil, []byte("n")))
	e := entry("acme", "m", "k", 7)
	for _, s := range []vaultStore{v.b, v.a} {
		v.check(s.SettleDeposit(v.Context(), "d", nil, &e))
	}
	v.check(v.a.Deposit(v.Context(), "unbooked", nil, nil))
	v.check(v.b.SettleDeposit(v.Context(), "unbooked", nil, nil))
	v.gone("unbooked")
	if got := totalOf(v, v.a, books.Query{}); got != e.Amounts {
		v.Errorf("%v is booked", got)
	}
}

// A provider that counts its batches, and is started anew, gives them ids that were there before.
func depositedAgain(v *vault) {
	for i := range int64(3) {
		v.deposit("d")
		e := entry("acme", "m", "k", 7)
		v.check(v.b.SettleDeposit(v.Context(), "d", []int64{10, 10}, &e))
		used := 10 * (i + 1)
		v.wantLeft("a/x", 1000-used, 5000-used, 9000-used, 7000-used)
		if got := totalOf(v, v.a, books.Query{}); got[books.Requests] != i+1 {
			v.Errorf("%d of %d are booked", got[books.Requests], i+1)
		}
	}
}

func namedDeposits(v *vault) {
	v.check(v.a.NameDeposit(v.Context(), "d", "early"))
	v.gone("early")
	v.deposit("d")
	for _, name := range []string{"file 1", "file \x00 2"} {
		v.check(v.a.NameDeposit(v.Context(), "d", name))
		if id, _, err := v.b.FindDeposit(v.Context(), name); id != "d" || err != nil {
			v.Errorf("by %q: %q, %v", name, id, err)
		}
	}
	v.gone("file 1")
	v.check(v.b.DropDeposit(v.Context(), "d"))
	v.gone("d")
	v.gone("file \x00 2")
	v.check(v.a.SettleDeposit(v.Context(), "d", []int64{0, 0}, nil))
	v.wantLeft("a/x", 900, 4900, 8900, 6900)
}

func dueDeposits(v *vault) {
	for _, id := range []string{"1", "2", "3", "4"} {
		v.deposit(id)
		v.clock.add(time.Minute)
	}
	now := v.clock.now()
	for _, c := range []struct {
		before int64
		most   int
		want   []string
	}{
		{0, 4, nil},
		{now - int64(150*time.Second), 4, []string{"1", "2"}},
		{0, 3, []string{"1"}},
		{now - int64(200*time.Second), 1, []string{"1", "2", "3"}},
	} {
		ids, err := v.b.DueDeposits(v.Context(), c.before, c.most)
		slices.Sort(ids)
		if !slices.Equal(ids, c.want) || err != nil {
			v.Errorf("due before %d, or beyond %d: %q, %v; want %q", c.before, c.most, ids, err, c.want)
		}
	}
}

func badDeposits(v *vault) {
	v.deposit("d")
	r, _, err := v.a.Take(v.Context(), []store.Charge{charge("a/x", 1, lasting...)})
	v.check(err)
	for what, c := range map[string]struct{ got, want error }{
		"the same id":       {v.b.Deposit(v.Context(), "d", nil, nil), accounts.ErrDeposited},
		"a foreign receipt": {v.a.Deposit(v.Context(), "e", "no receipt", nil), store.ErrReceipt},
		"too few amounts":   {v.a.SettleDeposit(v.Context(), "d", []int64{1}, nil), store.ErrReceipt},
	} {
		if !errors.Is(c.got, c.want) {
			v.Errorf("%s: %v", what, c.got)
		}
	}
	s := v.next()
	s.Close()
	if err := s.Deposit(v.Context(), "f", r, nil); err == nil {
		v.Error("a store that is closed has taken a deposit")
	}
}
