package fleettests

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/engine/fleettests/memorybus"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// slotScene is workers of two projects that want slots, or tokens in flight, on some nodes. The projects have weights 3 and
// 1 unless it says otherwise.
type slotScene struct {
	nodes  int
	few    int // workers of the project of weight 3, all on the first node
	many   int // workers of the other, spread over all nodes
	answer time.Duration

	tokens bool // calls hold tokens, those of the first project four times as many, and not slots
	inside bool // both projects are in another one
	ofThat bool // which has the limit; otherwise a model has it
	few25  bool // the first project has weight 1, and a minimum share of 75%
	many10 bool // the second has a maximum share of 10%
}

const (
	slotsOfScene  = 12
	tokensOfScene = 12_000
)

// nodesOf returns the nodes of the scene.
func (s slotScene) nodesOf(t *testing.T, b *memorybus.Bus) []*node {
	rules := slots(slotsOfScene)
	if s.tokens {
		rules = func() *engine.Rules {
			return &engine.Rules{Limits: []engine.Limit{{Name: "tokens", Unit: engine.TokensInFlight, Limit: engine.AtATime(tokensOfScene)}}}
		}
	}
	list := newNodesBelow(t, b.Open, s.nodes, rules, map[string]int{"few": 3, "many": 1}, func(e *engine.Engine) (divided, above *engine.Scope) {
		if s.inside {
			above = e.NewOwn("p/acme/", "acme")
		}
		if divided = above; !s.ofThat {
			divided = e.NewShared("m/", "m", nil)
		}
		return divided, above
	})
	for _, n := range list {
		few, many := &engine.Rules{Weight: 3}, &engine.Rules{Weight: 1}
		if s.few25 {
			few = &engine.Rules{Weight: 1, MinShare: .75}
		}
		if s.many10 {
			many.MaxShare = .1
		}
		if err := errors.Join(n.SetRules(n.projects["few"], few), n.SetRules(n.projects["many"], many)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// part returns which part of what was held the first project has held, and how much of the limit was held.
func (s slotScene) part(t *testing.T, b *memorybus.Bus) (part, used float64) {
	const begin, lasts = time.Minute, 5 * time.Minute
	list := s.nodesOf(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	start, had := time.Now(), map[string]float64{}
	random := rand.New(rand.NewPCG(1, 2))
	all, size := float64(slotsOfScene), map[string]int{"few": 1, "many": 1}
	if s.tokens {
		all, size = tokensOfScene, map[string]int{"few": 400, "many": 100}
	}
	work := func(n *node, project string) {
		for {
			var r engine.Result
			if n.Acquire(ctx, &engine.Call{Estimated: size[project]}, n.scopes(project), &r) != nil {
				return
			}
			mu.Lock()
			d := s.answer/2 + time.Duration(random.Int64N(int64(s.answer)))
			from, to := max(time.Since(start), begin), min(time.Since(start)+d, lasts)
			had[project] += max((to-from).Seconds(), 0) * float64(size[project])
			mu.Unlock()
			time.Sleep(d)
			r.Reservation.Commit(llm.Tokens{})
		}
	}
	for range s.few {
		group.Go(func() { work(list[0], "few") })
	}
	for i := range s.many {
		group.Go(func() { work(list[i%s.nodes], "many") })
	}
	group.Wait()
	sum := had["few"] + had["many"]
	return had["few"] / sum, sum / all / (lasts - begin).Seconds()
}

// Slots and tokens in flight are divided by weight among projects whose calls come to several nodes, although one of them
// calls one node alone and the other all of them, with many more workers; and hardly anything is idle. So it is for those
// of a model and of a project, and among projects inside another; minimum and maximum shares hold.
func TestSlotsAreSharedOverNodes(t *testing.T) {
	for _, s := range []slotScene{
		{nodes: 2, few: 20, many: 60, answer: 10 * time.Second},
		{nodes: 3, few: 20, many: 100, answer: 20 * time.Second},
		{nodes: 2, few: 20, many: 60, answer: 10 * time.Second, inside: true},
		{nodes: 2, few: 20, many: 60, answer: 10 * time.Second, inside: true, ofThat: true},
		{nodes: 2, few: 30, many: 150, answer: 10 * time.Second, tokens: true},
		{nodes: 2, few: 30, many: 150, answer: 10 * time.Second, tokens: true, inside: true, ofThat: true},
		{nodes: 2, few: 20, many: 60, answer: 10 * time.Second, few25: true},
		{nodes: 2, few: 20, many: 60, answer: 10 * time.Second, many10: true},
	} {
		onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
			part, used := s.part(t, b)
			t.Logf("%+v: %.3f, %.3f used", s, part, used)
			want := .75
			if s.many10 {
				want = 11. / 12
			}
			if math.Abs(part-want) > .05 || used < .97 {
				t.Errorf("%+v: the first project has %.3f, want %.3f; %.3f are used", s, part, want, used)
			}
		})
	}
}

// What the project of weight 3 does not want, the other has.
func TestSlotsAreLent(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		part, used := slotScene{nodes: 3, few: 2, many: 60, answer: 10 * time.Second}.part(t, b)
		if math.Abs(part-2./12) > .02 || used < .97 {
			t.Errorf("two workers have %.3f of 12 slots, and %.3f are used", part, used)
		}
	})
}

// A free slot waits for nobody who could not use it: a call whose project has nothing left does not keep it from others.
func TestSlotsDoNotWaitForACallThatIsDenied(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		list := newNodes(t, b.Open, 2, slots(2), map[string]int{"spent": 1, "other": 1})
		for _, n := range list {
			minute := engine.Limit{Name: "rpm", Unit: engine.Requests, Limit: limit.PerMinute(1).Using(limit.SlidingLog)}
			if err := n.SetRules(n.projects["spent"], &engine.Rules{Weight: 1, Limits: []engine.Limit{minute}}); err != nil {
				t.Fatal(err)
			}
		}
		acquire := func(n *node, project string) *engine.Reservation {
			res, err := n.acquire(t.Context(), project)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		acquire(list[0], "spent").Commit(llm.Tokens{})
		first, second := acquire(list[1], "other"), acquire(list[1], "other")
		spent := list[0].acquireLater(t, "spent")
		var group sync.WaitGroup
		group.Go(func() { (<-spent).Commit(llm.Tokens{}) })
		time.Sleep(time.Second)
		first.Commit(llm.Tokens{})
		begin := time.Now()
		third := acquire(list[1], "other")
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("a free slot was idle for %v", waited)
		}
		second.Commit(llm.Tokens{})
		third.Commit(llm.Tokens{})
		group.Wait()
	})
}
