package fleettests

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// slotScene is workers of two projects, of weights 3 and 1, that want slots of a model on some nodes.
type slotScene struct {
	nodes  int
	few    int // workers of the project of weight 3, all on the first node
	many   int // workers of the other, spread over all nodes
	answer time.Duration
}

// part returns which part of the time of all slots the project of weight 3 has had, and how much of the slots was used.
func (s slotScene) part(t *testing.T, w *wire) (part, used float64) {
	const all, lasts = 12, 8 * time.Minute
	list := newNodes(t, w.open, s.nodes, slots(all), map[string]int{"few": 3, "many": 1})
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	had := map[string]time.Duration{}
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now().Add(2 * time.Minute)
	work := func(n *node, project string) {
		for {
			res, err := n.acquire(ctx, project)
			if err != nil {
				return
			}
			mu.Lock()
			d := s.answer/2 + time.Duration(random.Int64N(int64(s.answer)))
			mu.Unlock()
			start := time.Now()
			time.Sleep(d)
			res.Commit(llm.Tokens{})
			mu.Lock()
			if start.After(begin) {
				had[project] += d
			}
			mu.Unlock()
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
	return float64(had["few"]) / float64(sum), float64(sum) / float64(all*(lasts-2*time.Minute))
}

// Slots are divided by weight among projects whose calls come to several nodes, although one of them calls one node alone
// and the other all of them, with many more workers; and hardly any slot is idle.
func TestSlotsAreSharedOverNodes(t *testing.T) {
	for _, s := range []slotScene{{2, 20, 60, 10 * time.Second}, {3, 20, 100, 20 * time.Second}} {
		onFakeTime(t, func(t *testing.T, w *wire) {
			part, used := s.part(t, w)
			t.Logf("%+v: %.3f, %.3f used", s, part, used)
			if math.Abs(part-.75) > .07 || used < .97 { // 75% were measured, and 99% used; without shares the project has 18 to 38%
				t.Errorf("%+v: the project of weight 3 has %.3f of the slots, want .75; %.3f are used", s, part, used)
			}
		})
	}
}

// What the project of weight 3 does not want, the other has.
func TestSlotsAreLent(t *testing.T) {
	onFakeTime(t, func(t *testing.T, w *wire) {
		part, used := slotScene{3, 2, 60, 10 * time.Second}.part(t, w)
		if math.Abs(part-2./12) > .02 || used < .97 {
			t.Errorf("two workers have %.3f of 12 slots, and %.3f are used", part, used)
		}
	})
}

// A free slot waits for nobody who could not use it: a call whose project has nothing left does not keep it from others.
func TestSlotsDoNotWaitForACallThatIsDenied(t *testing.T) {
	onFakeTime(t, func(t *testing.T, w *wire) {
		list := newNodes(t, w.open, 2, slots(2), map[string]int{"spent": 1, "other": 1})
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
