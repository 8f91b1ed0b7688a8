package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// cutting returns the rules of a scope that cuts streams, with limits on tokens and dollars in any hour.
func cutting(tokens, dollars int64) *engine.Rules {
	r := &engine.Rules{LeastTokens: 1, Limits: []engine.Limit{
		{Name: "requests", Unit: engine.Requests, Limit: limit.New(1_000_000, time.Hour).Using(limit.SlidingLog)},
		{Name: "tokens", Unit: engine.AllTokens, Limit: limit.New(tokens, time.Hour).Using(limit.SlidingLog)},
		{Name: "dollars", Unit: engine.Dollars, Limit: limit.New(dollars, time.Hour).Using(limit.SlidingLog)},
	}}
	r.Most[engine.AllTokens], r.Cut[engine.AllTokens] = true, true
	r.Most[engine.Dollars], r.Cut[engine.Dollars] = true, true
	return r
}

// streamOf returns a call that is expected to use 5 tokens of input and 10 of output, for 15, reserves 10 and 10 for 20 at
// first, and uses 10 and 100 at most, for 110.
func streamOf(project string) *engine.Call {
	return &engine.Call{
		Project: project, Tokens: llm.Tokens{Input: 5, Output: 10}, Dollars: 15,
		Most: llm.Tokens{Input: 10, Output: 100}, MostDollars: 110, First: llm.Tokens{Input: 10, Output: 10}, FirstDollars: 20,
	}
}

// extend extends a reservation by tokens of output that cost as many billionths of a dollar, and reports whether it has.
func (b *bench) extend(r *engine.Reservation, more int) bool {
	b.t.Helper()
	denial, err := r.Extend(context.Background(), llm.Tokens{Output: more}, price.Amount(more))
	b.must(err)
	return denial == nil
}

func TestExtend(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		n := 0
		begin := func() (*engine.Reservation, *engine.Scope, *engine.Scope) {
			n++
			cut, debt := b.NewOwn(fmt.Sprint("cut", n, "/"), "cut"), b.own(fmt.Sprint("debt", n), perMinute(engine.AllTokens, 1000))
			b.must(b.SetRules(cut, cutting(100, 1000)))
			r := b.take(streamOf("cut"), cut, debt)
			b.wantUsed(cut, 1, 20, 20)
			b.wantUsed(debt, 15)
			for _, more := range []int{20, 40} {
				if !b.extend(r, more) {
					t.Fatalf("%d more were denied", more)
				}
			}
			b.wantUsed(cut, 1, 80, 80)
			if held := cut.Held(engine.AllTokens); held != 80 {
				t.Errorf("%d tokens are held, want 80", held)
			}
			if b.extend(r, 21) || !r.Extends() {
				t.Error("more than the limit was reserved")
			}
			b.wantUsed(cut, 1, 80, 80)
			b.wantUsed(debt, 15)
			return r, cut, debt
		}
		for _, c := range []struct {
			used      llm.Tokens
			price     int64
			inexact   bool
			cut, debt []int64
		}{
			{llm.Tokens{Input: 5, Output: 5}, 10, false, []int64{1, 10, 10}, []int64{10}},
			{llm.Tokens{Input: 10, Output: 10}, 20, false, []int64{1, 20, 20}, []int64{20}},
			{llm.Tokens{Input: 8, Output: 25}, 33, false, []int64{1, 33, 33}, []int64{33}},
			{llm.Tokens{Input: 10, Output: 30}, 40, false, []int64{1, 40, 40}, []int64{40}},
			{llm.Tokens{Input: 10, Output: 31}, 41, false, []int64{1, 41, 41}, []int64{41}},
			{llm.Tokens{Input: 10, Output: 70}, 80, false, []int64{1, 80, 80}, []int64{80}},
			{llm.Tokens{Input: 10, Output: 95}, 105, false, []int64{1, 105, 105}, []int64{105}},
			{llm.Tokens{Input: -1, Output: -1}, -1, false, []int64{1, 80, 80}, []int64{15}},
			{llm.Tokens{Input: 3, Output: -1}, -1, false, []int64{1, 73, 80}, []int64{13}},
			{llm.Tokens{Input: -1, Output: 12}, 7, false, []int64{1, 22, 7}, []int64{17}},
			{llm.Tokens{Input: 10, Output: 12}, 22, true, []int64{1, 80, 80}, []int64{22}},
			{llm.Tokens{Input: 10, Output: 90}, 100, true, []int64{1, 100, 100}, []int64{100}},
			{llm.Tokens{}, 0, false, []int64{1, 0, 0}, []int64{0}},
		} {
			r, cut, debt := begin()
			if c.inexact {
				r.Inexact()
			}
			r.CommitPriced(c.used, c.price)
			b.wantUsed(cut, c.cut...)
			b.wantUsed(debt, c.debt...)
			if held := cut.Held(engine.AllTokens); held != 0 {
				t.Errorf("%v: %d tokens are held after the end", c, held)
			}
			if _, err := r.Extend(t.Context(), llm.Tokens{Output: 1}, 1); err == nil {
				t.Error("a call that has ended was extended")
			}
			b.wantUsed(cut, c.cut...)
		}
		r, cut, debt := begin()
		r.Cancel()
		b.wantUsed(cut, 0, 0, 0)
		b.wantUsed(debt, 0)
	})
}

// One limit that denies is enough, and a denial says which one it was, what is left of it and when to ask again.
func TestExtendAllOrNothing(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		wide, narrow := b.NewOwn("wide/", "wide"), b.NewOwn("narrow/", "narrow")
		b.must(errors.Join(b.SetRules(wide, cutting(1000, 1000)), b.SetRules(narrow, cutting(1000, 50))))
		r := b.take(streamOf("p"), narrow, wide)
		time.Sleep(time.Minute)
		denial, err := r.Extend(t.Context(), llm.Tokens{Output: 10}, 31)
		if err != nil || denial == nil || denial.Scope != narrow || denial.Limit.Name != "dollars" || denial.Left != 30 || denial.RetryAfter != 59*time.Minute {
			t.Errorf("%+v, %v", denial, err)
		}
		b.wantUsed(wide, 1, 20, 20)
		b.wantUsed(narrow, 1, 20, 20)
		if !b.extend(r, 30) {
			t.Error("what is left was denied")
		}
		time.Sleep(59 * time.Minute) // what was reserved at first has left the hour
		b.wantUsed(wide, 0, 30, 30)
		r.CommitPriced(llm.Tokens{Input: 10, Output: 20}, 30)
		b.wantUsed(wide, 0, 10, 10)
	})
}

// A call that does not say what it reserves at first reserves the most of limits that cut, and needs no more.
func TestWithoutExtension(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		cut := b.NewOwn("cut/", "cut")
		b.must(b.SetRules(cut, cutting(200, 200)))
		c := streamOf("p")
		c.First, c.FirstDollars = llm.Tokens{}, 0
		r := b.take(c, cut)
		b.wantUsed(cut, 1, 110, 110)
		if r.Extends() || !b.extend(r, 1000) {
			t.Error("what is reserved can be extended")
		}
		b.wantUsed(cut, 1, 110, 110)
		r.CommitPriced(llm.Tokens{Input: 1, Output: 2}, 3)
		b.wantUsed(cut, 1, 3, 3)
	})
}

// Shadows count extensions, and do not deny them.
func TestExtendInShadow(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		cut := b.NewOwn("cut/", "cut")
		b.must(b.SetRules(cut, cutting(30, 30)))
		r := b.take(streamOf("p"), cut.Shadow())
		if !b.extend(r, 50) {
			t.Error("a shadow denies")
		}
		b.wantUsed(cut, 1, 70, 70)
		r.CommitPriced(llm.Tokens{Input: 10, Output: 15}, 25)
		b.wantUsed(cut, 1, 25, 25)
	})
}

func TestBadExtensions(t *testing.T) {
	b := newBench(t, store.NewMemory())
	cut := b.NewOwn("cut/", "cut")
	b.must(b.SetRules(cut, cutting(100, 100)))
	r := b.take(streamOf("p"), cut)
	for _, more := range []struct {
		tokens llm.Tokens
		price  price.Amount
	}{{llm.Tokens{Output: -1}, 0}, {llm.Tokens{Output: 1}, -1}, {llm.Tokens{Input: 1}, 0}, {llm.Tokens{Output: 1 << 54}, 0}} {
		if denial, err := r.Extend(t.Context(), more.tokens, more.price); denial != nil || err == nil {
			t.Errorf("%+v: %v, %v", more, denial, err)
		}
	}
	b.wantUsed(cut, 1, 20, 20)
	if err := r.Deposit(t.Context(), "id", nil); err == nil {
		t.Error("the reservation was deposited")
	}
	r.Cancel()
	b.wantUsed(cut, 0, 0, 0)
}

// slow is a store that takes a second for each question.
type slow struct {
	store.Store
	asked atomic.Int32
}

func (s *slow) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	time.Sleep(time.Second)
	s.asked.Add(1)
	return s.Store.Take(ctx, charges)
}

func (s *slow) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	time.Sleep(time.Second)
	s.asked.Add(1)
	return s.Store.Settle(ctx, r, actual)
}

// Each extension asks the store once. They are settled together with the call, and only as far as they are corrected.
func TestExtensionsAskTheStoreOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: store.NewMemory()}
		b := newBench(t, s)
		cut := b.NewOwn("cut/", "cut")
		b.must(b.SetRules(cut, cutting(1<<20, 1<<20)))
		for _, c := range []struct {
			used  int
			asked int32 // in all: two for the call, one for each slice, and those that are corrected
		}{{70, 2 + 8 + 8}, {10 + 64 + 128, 2 + 8 + 6}, {10 + 64*255, 2 + 8}, {10 + 64*255 - 1, 2 + 8 + 1}} {
			began := time.Now()
			s.asked.Store(0)
			r := b.take(streamOf("p"), cut)
			for slice := 64; slice <= 8192; slice *= 2 {
				if !b.extend(r, slice) {
					t.Fatal("denied")
				}
			}
			r.CommitPriced(llm.Tokens{Input: 10, Output: c.used}, int64(10+c.used))
			if took, asked := time.Since(began), s.asked.Load(); took != (1+8+1)*time.Second || asked != c.asked {
				t.Errorf("%d tokens: the store was asked %d times in %v; want %d", c.used, asked, took, c.asked)
			}
		}
	})
}

// extendStores returns all stores, outside of a bubble.
func extendStores(t *testing.T) map[string]store.Store {
	all := map[string]store.Store{}
	for name, open := range stores {
		all[name] = open(t)
	}
	redis, err := redisstore.New(redisstore.Config{URL: redistest.New(t).URL(), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	all["redis"] = redis
	return all
}

// stream is a call under way in the naive model.
type stream struct {
	r      *engine.Reservation
	scopes engine.Scopes
	taken  int64 // of each scope
}

// However calls are taken, extended, committed and cancelled, each scope has exactly what the calls in it have reserved or
// used, and never more than its limit.
func TestExtensionsAddUp(t *testing.T) {
	const most = 500
	for name, s := range extendStores(t) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, s)
			var scopes engine.Scopes
			for i := range 3 {
				scope := b.NewOwn(fmt.Sprint("p", i, "/"), "p")
				b.must(b.SetRules(scope, cutting(most, most)))
				scopes = append(scopes, scope)
			}
			used := map[*engine.Scope]int64{}
			add := func(of engine.Scopes, n int64) {
				for _, s := range of {
					used[s] += n
				}
			}
			fits := func(of engine.Scopes, n int64) bool {
				for _, s := range of {
					if used[s]+n > most {
						return false
					}
				}
				return true
			}
			var all []*stream
			for range testkit.Rounds(100, 400) {
				if len(all) == 0 || rand.IntN(4) == 0 {
					c := &stream{scopes: scopes[rand.IntN(3):], taken: 20}
					r := b.try(streamOf("p"), c.scopes...)
					if c.r = r.Reservation; r.Allowed() != fits(c.scopes, 20) {
						t.Fatalf("allowed %v with %v", r.Allowed(), used)
					}
					if r.Allowed() {
						all = append(all, c)
						add(c.scopes, 20)
					}
					continue
				}
				i := rand.IntN(len(all))
				c, n := all[i], int64(1+rand.IntN(80))
				switch rand.IntN(4) {
				case 0, 1:
					if got, want := b.extend(c.r, int(n)), fits(c.scopes, n); got != want {
						t.Fatalf("extended %v, want %v with %v and %d", got, want, used, n)
					} else if got {
						c.taken += n
						add(c.scopes, n)
					}
					continue
				case 2:
					n = rand.Int64N(c.taken + 1)
					c.r.CommitPriced(llm.Tokens{Output: int(n)}, n)
					add(c.scopes, n-c.taken)
				case 3:
					c.r.Cancel()
					add(c.scopes, -c.taken)
				}
				all = append(all[:i], all[i+1:]...)
				for _, s := range scopes {
					if got := b.used(s); got[1] != used[s] || got[2] != used[s] {
						t.Fatalf("%s has %d in use, want %d", s.Key, got, used[s])
					}
				}
			}
			for _, c := range all {
				c.r.Cancel()
				add(c.scopes, -c.taken)
			}
			for _, s := range scopes {
				if got := b.used(s); got[1] != used[s] || s.Held(engine.AllTokens) != 0 {
					t.Errorf("%s has %d in use, and %d are held; want %d, 0", s.Key, got, s.Held(engine.AllTokens), used[s])
				}
			}
		})
	}
}

// While many calls extend, end and are cancelled at the same time, no more than the limit is ever in use, and in the end
// nothing but what was used.
func TestExtendTogether(t *testing.T) {
	const most = 1000
	for name, s := range extendStores(t) {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Config{Store: s, Owned: true, Clock: clock.New(), OnError: func(err error) { t.Error(err) }})
			b := &bench{Engine: e, t: t}
			defer b.Close()
			cut := b.NewOwn("cut/", "cut")
			b.must(b.SetRules(cut, cutting(most, most)))
			var spent, denied atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 25 {
						r := b.try(streamOf("p"), cut).Reservation
						if r == nil {
							denied.Add(1)
							continue
						}
						reserved := 10
						for more := range 4 {
							ended := more == 3 && rand.IntN(2) == 0
							if ended { // at the same time
								all.Go(func() { r.Cancel() })
							}
							denial, err := r.Extend(t.Context(), llm.Tokens{Output: 8 << more}, 8<<more)
							if err != nil && !ended {
								t.Error(err)
							}
							if denial != nil {
								denied.Add(1)
							} else if err == nil {
								reserved += 8 << more
							}
						}
						if used := b.used(cut); used[1] > most || used[2] > most {
							t.Errorf("%d are in use", used)
						}
						n := rand.IntN(reserved) / 8
						if r.CommitPriced(llm.Tokens{Output: n}, int64(n)) {
							spent.Add(int64(n))
						}
					}
				})
			}
			all.Wait()
			if held := cut.Held(engine.AllTokens); held != 0 {
				t.Errorf("%d are held", held)
			}
			if got := b.used(cut); got[1] != spent.Load() || got[2] != spent.Load() || denied.Load() == 0 {
				t.Errorf("%d are in use, want %d; %d were denied", got, spent.Load(), denied.Load())
			}
		})
	}
}
