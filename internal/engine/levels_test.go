package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
)

// levelStep is a call in a tree of scopes, and what becomes of it.
type levelStep struct {
	leaf        int
	asks, uses  int
	cancels     bool
	holds, pass int // for how many steps it is under way, and how many seconds pass before it
}

var levelSteps = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) levelStep {
	return levelStep{
		leaf: rapid.IntRange(0, 3).Draw(rt, "leaf"), asks: rapid.IntRange(1, 30).Draw(rt, "asks"), uses: rapid.IntRange(0, 40).Draw(rt, "uses"),
		cancels: rapid.Bool().Draw(rt, "cancels"), holds: rapid.IntRange(0, 5).Draw(rt, "holds"), pass: rapid.SampledFrom([]int{0, 0, 0, 1, 20, 70}).Draw(rt, "pass"),
	}
}), 1, 60)

// Whatever happens, what the members of every pool have used is what the limits themselves have counted: a
// call is charged to the shares of all levels and of the model, or to none, and settled in all of them.
func TestSharesOfAllLevelsAreChargedOrNone(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				steps := levelSteps.Draw(rt, "history")
				failed := &failures{}
				synctest.Test(t, func(t *testing.T) {
					failed.TB = t
					playLevels(newBench(failed, open(t)), steps)
				})
				failed.report(rt)
			})
		})
	}
}

func playLevels(b *bench, steps []levelStep) {
	model := b.shared("m", nil, perMinute(engine.Tokens, 150))
	acme := b.own("acme", perMinute(engine.AllTokens, 100))
	search := b.NewBelow(acme, "acme:search/", "acme/search")
	b.set(search, perMinute(engine.AllTokens, 80))
	leaves := []*engine.Scope{b.NewBelow(search, "a/", "acme/search/a"), b.NewBelow(search, "b/", "acme/search/b"), b.NewBelow(acme, "c/", "acme/chat"), acme}
	for i, s := range leaves[:3] { // with a maximum, so that there are pools from the first call on
		b.must(b.SetRules(s, &engine.Rules{Weight: i + 1, MaxShare: 1}))
	}
	b.take(callOf("acme/search/a", 1), leaves[0].Append([]*engine.Scope{model})...).Commit(llm.Tokens{})
	type call struct {
		step levelStep
		res  *engine.Reservation
		ends int
	}
	var open []call
	settle := func(at int) {
		rest := open[:0]
		for _, c := range open {
			switch {
			case c.ends > at:
				rest = append(rest, c)
			case c.step.cancels:
				c.res.Cancel()
			default:
				c.res.Commit(llm.Tokens{Input: c.step.uses})
			}
		}
		open = rest
	}
	for i, step := range steps {
		time.Sleep(time.Duration(step.pass) * time.Second)
		scopes := leaves[step.leaf].Append([]*engine.Scope{model})
		if r := b.try(callOf(leaves[step.leaf].Name, step.asks), scopes...); r.Reservation != nil {
			open = append(open, call{step, r.Reservation, i + step.holds})
		}
		settle(i)
		if len(open) == 0 {
			b.wantShared(fmt.Sprintf("after step %d, %+v", i, step), model, search, acme)
		}
	}
	settle(len(steps) + 10)
	b.wantShared("in the end", model, search, acme)
}

// wantShared wants the members of scopes to have used what their limits have counted.
func (b *bench) wantShared(when string, scopes ...*engine.Scope) {
	b.t.Helper()
	for _, s := range scopes {
		sum := int64(0)
		flows := b.Shares(s)
		for _, f := range flows {
			sum += int64(f.Limits[0].Used)
		}
		if want := b.used(s)[0]; len(flows) > 0 && sum != want {
			b.t.Errorf("%s: those who share %s have used %d: %+v; it has counted %d", when, s.Name, sum, flows, want)
		}
	}
}
