package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// sixScopes returns a shared scope and five around each other. Each has three limits, and the
// outermost has a slot.
func sixScopes(b *bench) (all []*engine.Scope) {
	limits := func(name string) []engine.Limit {
		hour := engine.Limit{Name: name + " hour", Unit: engine.Requests, Limit: limit.New(1000, time.Hour).Using(limit.SlidingLog)}
		return []engine.Limit{perMinute(engine.Requests, 100), perMinute(engine.AllTokens, 1000), hour}
	}
	all = append(all, b.shared("shared", nil, limits("shared")...))
	for i := range 4 {
		all = append(all, b.own(fmt.Sprint(i), limits(fmt.Sprint(i))...))
	}
	return append(all, b.own("outermost", append(limits("outermost"), atATime(1))...))
}

// Of six scopes with nineteen limits, the outermost denies: nothing is taken anywhere, and the call
// that waits for it passes when something is given back there, or when its lease is over.
func TestOutermostScopeDenies(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		scopes := sixScopes(b)
		first := b.take(callOf("first", 10), scopes...)
		b.wantDenied(callOf("denied", 10), "slots", time.Second, scopes...)
		waits := b.acquire(callOf("waits", 20), scopes...)
		later := b.acquire(callOf("later", 30), scopes...)
		other := b.own("other")
		time.Sleep(30 * time.Second)
		if waits.ended() || later.ended() {
			t.Errorf("they pass: %v, %v", waits.err, later.err)
		}
		b.take(callOf("other", 0), scopes[0], other) // the shared scope is not in the way
		first.Commit(llm.Tokens{Input: 1, Output: 1})
		if !waits.passed() || later.ended() {
			t.Errorf("the first of them passes: %t; the second waits: %t", waits.passed(), !later.ended())
		}
		var r engine.Result
		if err := b.Look(t.Context(), callOf("looks", 0), scopes, &r); err != nil {
			t.Fatal(err)
		}
		for i, s := range scopes {
			standing := r.Outcome.Of(s)
			for k := range standing.Len() {
				l, d := standing.At(k)
				want := map[engine.Unit]int64{engine.Requests: 2, engine.AllTokens: 22, engine.Slots: 1}[l.Unit]
				if i == 0 && l.Unit == engine.Requests {
					want++
				}
				if d.Used != want || d.Remaining != l.Limit.Count()-want {
					t.Errorf("scope %d: %d are used of %q and %d left; want %d and %d", i, d.Used, l.Name, d.Remaining, want, l.Limit.Count()-want)
				}
			}
		}
		time.Sleep(engine.Lease - 1)
		if later.ended() {
			t.Errorf("it has passed before the lease was over: %v", later.err)
		}
		time.Sleep(time.Nanosecond)
		if !later.passed() || later.result.Waited != engine.Lease+30*time.Second {
			t.Errorf("the lease is over, and it waits: %v, %v", later.err, later.result.Waited)
		}
		b.wantEvents("waits", event.Admitted)
		b.wantEvents("later", event.Admitted)
	})
}

// Calls of several flows wait for a scope around them: what is given back there lets one of them
// pass, and the next when that one has ended.
func TestFlowsWaitForAScopeAroundThem(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		outer := b.own("outer", atATime(1))
		held := b.take(callOf("", 0), b.own("first"), outer)
		var waits []*waiting
		for i := range 3 {
			waits = append(waits, b.acquire(callOf(fmt.Sprint(i), 0), b.own(fmt.Sprint("flow", i), perMinute(engine.AllTokens, 10)), outer))
		}
		for range 3 {
			held.Cancel()
			passed := 0
			for i, w := range waits {
				if w != nil && w.passed() {
					held, waits[i] = w.result.Reservation, nil
					passed++
				}
			}
			if passed != 1 {
				t.Fatalf("%d calls pass; want one of those that wait", passed)
			}
		}
	})
}

// A call is charged to its part of the limits.
func TestParts(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for i, tt := range []struct {
			part engine.Part
			want []int64 // requests, input, slots, all tokens
			done []int64
		}{
			{engine.Whole, []int64{1, 3, 1, 12}, []int64{1, 1, 0, 3}},
			{engine.WithoutSlots, []int64{1, 3, 0, 12}, []int64{1, 1, 0, 3}},
			{engine.RequestsOnly, []int64{1, 0, 0, 0}, []int64{1, 0, 0, 0}},
		} {
			limits := []engine.Limit{perMinute(engine.AllTokens, 20), perMinute(engine.Requests, 2), atATime(2), perMinute(engine.Input, 3)}
			p := b.own(fmt.Sprint("p", i), limits...)
			c := callOf("", 12)
			engine.SetPart(c, tt.part)
			res := b.take(c, p)
			b.wantUsed(p, tt.want...)
			res.Commit(llm.Tokens{Input: 1, Output: 2})
			b.wantUsed(p, tt.done...)
		}
	})
}

// A call that estimates no tokens takes as many as its scope wants at least, until it ends. What is not
// known then is none.
func TestLeastTokens(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for i, tt := range []struct {
			input, output int
			want          int64
		}{{-1, -1, 0}, {0, -1, 0}, {-1, 2, 2}, {4, -1, 4}, {0, 0, 0}, {1, 1, 2}} {
			p := b.NewOwn(fmt.Sprint("p", i, "/"), "p")
			b.must(b.SetRules(p, &engine.Rules{Limits: []engine.Limit{perMinute(engine.AllTokens, 10)}, LeastTokens: 1}))
			res := b.take(callOf("", 0), p)
			b.wantUsed(p, 1)
			res.Commit(llm.Tokens{Input: tt.input, Output: tt.output})
			b.wantUsed(p, tt.want)
		}
	})
}

// Calls that ask for requests alone do not wait behind those that wait for tokens, and do behind those
// that wait for requests.
func TestPlainCallsDoNotWaitForTokens(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		p := b.own("p", perMinute(engine.AllTokens, 10), perMinute(engine.Requests, 4))
		plain := callOf("plain", 0)
		engine.SetPart(plain, engine.RequestsOnly)
		b.take(callOf("first", 10), p)
		waits := b.acquire(callOf("waits", 5), p)
		b.take(plain, p)
		b.wantDenied(callOf("behind", 0), "tokens", time.Minute, p)
		waits.leave()
		if !waits.ended() {
			t.Error("its caller has left, and it waits")
		}
		two := &engine.Call{Project: "two", Requests: 3}
		engine.SetPart(two, engine.RequestsOnly)
		waits = b.acquire(two, p)
		b.wantDenied(plain, "requests", time.Minute, p)
		waits.leave()
	})
}

// A call that is charged to nothing passes, and is observed as any other.
func TestCallsWithoutCharges(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		free := perMinute(engine.Requests, engine.Boundless)
		free.Free = true
		requests := callOf("", 5)
		engine.SetPart(requests, engine.RequestsOnly)
		for i, tt := range []struct {
			call   *engine.Call
			scopes []*engine.Scope
		}{
			{callOf("", 5), nil},
			{callOf("", 5), []*engine.Scope{b.own("empty")}},
			{callOf("", 5), []*engine.Scope{b.NewOwn("without rules/", "without rules")}},
			{callOf("", 5), []*engine.Scope{b.shared("free", nil, free), b.own("empty")}},
			{requests, []*engine.Scope{b.own("tokens", perMinute(engine.AllTokens, 1))}},
		} {
			id := fmt.Sprint("call ", i)
			tt.call.Project = id
			if !b.take(tt.call, tt.scopes...).Commit(llm.Tokens{Input: 1}) {
				t.Errorf("%s: Commit does not count", id)
			}
			w := b.acquire(tt.call, tt.scopes...)
			if !w.passed() {
				t.Fatalf("%s waits: %v", id, w.err)
			}
			w.result.Reservation.Cancel()
			b.wantEvents(id, event.Admitted, event.Settled, event.Admitted, event.Cancelled)
		}
	})
}

// Close lets all calls go that wait, wherever they do, and no call passes any more.
func TestCloseWhileCallsWait(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		m, p, q := b.shared("m", nil, perMinute(engine.Requests, 1)), b.own("p", perMinute(engine.Requests, 1)), b.own("q")
		held := b.take(callOf("", 0), m, p)
		var all []*waiting
		for _, scopes := range [][]*engine.Scope{{m}, {m, p}, {m, q}, {p}, {p}, {m, q}} {
			all = append(all, b.acquire(callOf("waits", 0), scopes...))
		}
		b.Close()
		for i, w := range all {
			if !w.ended() || !errors.Is(w.err, store.ErrClosed) || w.result.Reservation != nil {
				t.Errorf("call %d: ended %t, %v", i, w.ended(), w.err)
			}
			w.leave()
		}
		held.Cancel()
		var r engine.Result
		if err := b.Try(t.Context(), callOf("", 0), engine.Scopes{m}, &r); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a call after Close: %v", err)
		}
		b.wantEvents("waits", event.Lost, event.Lost, event.Lost, event.Lost, event.Lost, event.Lost)
	})
}

// afterDenial is a store that calls a function after it has denied a take.
type afterDenial struct {
	store.Store
	do func()
}

func (s *afterDenial) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	receipt, said, err := s.Store.Take(ctx, charges)
	if receipt == nil {
		s.do()
	}
	return receipt, said, err
}

// A call that is denied just before Close, or before something is given back, and begins to wait just
// after it, does not wait.
func TestChangeBeforeACallWaits(t *testing.T) {
	for name, scope := range map[string]func(b *bench) *engine.Scope{
		"shared": func(b *bench) *engine.Scope { return b.shared("m", nil, perMinute(engine.Requests, 1)) },
		"own":    func(b *bench) *engine.Scope { return b.own("p", perMinute(engine.Requests, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &afterDenial{Store: store.NewMemory()}
				b := newBench(t, s)
				full := scope(b)
				held := b.take(callOf("", 0), full)
				s.do = func() { held.Cancel() }
				w := b.acquire(callOf("", 0), full)
				if !w.passed() {
					t.Errorf("it waits for what was given back: %v", w.err)
				}
				w.leave()
				s.do = func() { b.Close() }
				w = b.acquire(callOf("", 0), full)
				if !w.ended() || !errors.Is(w.err, store.ErrClosed) {
					t.Errorf("ended %t, %v; want %v at once", w.ended(), w.err, store.ErrClosed)
				}
				w.leave()
			})
		})
	}
}

// A call that is not valid is refused: nothing is asked.
func TestInvalidCall(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		p := b.own("p", perMinute(engine.Requests, 5))
		c := callOf("bad", -1)
		if engine.Invalid(c) == nil {
			t.Fatal("-1 tokens are valid")
		}
		var r engine.Result
		for name, err := range map[string]error{
			"Try":           b.Try(t.Context(), c, engine.Scopes{p}, &r),
			"Look":          b.Look(t.Context(), c, engine.Scopes{p}, &r),
			"Acquire":       b.Acquire(t.Context(), c, engine.Scopes{p}, &r),
			"AwaitCapacity": b.AwaitCapacity(t.Context(), c, engine.Scopes{p}, &r),
		} {
			if !errors.Is(err, engine.Invalid(c)) || r.Allowed() || r.Reservation != nil {
				t.Errorf("%s: %v, allowed %t", name, err, r.Allowed())
			}
		}
		b.wantUsed(p, 0)
		b.wantEvents("bad", event.Refused, event.Refused)
	})
}

// Every scope of a call is settled, however many there are: reservations of several sizes have room for them.
func TestCallsOfManyScopes(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for _, n := range []int{1, 2, 3, 6, 7, 9, 10, 14} {
			var scopes []*engine.Scope
			for i := range n {
				scopes = append(scopes, b.own(fmt.Sprint(n, "-", i), perMinute(engine.Requests, 100), perMinute(engine.AllTokens, 1000)))
			}
			b.take(callOf("call", 10), scopes...).Commit(llm.Tokens{Input: 1, Output: 2})
			for _, s := range scopes {
				b.wantUsed(s, 1, 3)
			}
		}
	})
}

// A call of two scopes allocates six times: for what its scopes answer, its charges, the store's decisions and receipt,
// its reservation, and the amounts that settle it.
func TestCallAllocatesLittle(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	b := newBench(t, store.NewMemory())
	b.Engine = engine.New(engine.Config{Store: b.Store(), Clock: b.Now}) // without an observer
	many := func(u engine.Unit) engine.Limit { return perMinute(u, 1<<40) }
	m, p := b.shared("m", nil, many(engine.Requests), many(engine.Tokens)), b.own("p", many(engine.Requests), many(engine.AllTokens))
	ctx := t.Context()
	for name, once := range map[string]func(){
		"Try": func() {
			c, scopes, r := engine.Call{Estimated: 10}, [2]*engine.Scope{m, p}, engine.Result{}
			b.must(b.Try(ctx, &c, scopes[:], &r))
			r.Reservation.Commit(llm.Tokens{Input: 3, Output: 4})
		},
		"Acquire": func() {
			c, scopes, r := engine.Call{Estimated: 10}, [2]*engine.Scope{m, p}, engine.Result{}
			b.must(b.Acquire(ctx, &c, scopes[:], &r))
			r.Reservation.Cancel()
		},
	} {
		for range 10_000 { // until its counters are as large as they become
			once()
		}
		if n := testing.AllocsPerRun(1000, once); n > 6 {
			t.Errorf("%s allocates %v times, with its settlement; want 6 at most", name, n)
		}
	}
}
