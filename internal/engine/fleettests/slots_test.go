package fleettests

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/engine/fleettests/memorybus"
	"dappco.re/go/core/go-ratelimit/llm"
)

// slots are rules of so many calls at a time.
func slots(n int64) func() *engine.Rules {
	return func() *engine.Rules {
		return &engine.Rules{Limits: []engine.Limit{{Name: "concurrent", Unit: engine.Slots, Limit: engine.AtATime(n)}}}
	}
}

// The slots of a node are taken for as long as its calls run, and free within 15 seconds after the node was killed.
func TestSlotsOfADeadNodeComeFree(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		list := newNodes(t, b.Open, 2, slots(3), map[string]int{"a": 1})
		lives, dies := list[0], list[1]
		for range 2 {
			if _, err := dies.acquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		own, err := lives.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		waits := lives.acquireLater(t, "a")
		time.Sleep(5 * time.Minute)
		select {
		case <-waits:
			t.Fatal("four calls are under way")
		default:
		}
		b.Kill(1)
		killed := time.Now()
		first := <-waits
		second, err := lives.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Since(killed); after > 15*time.Second {
			t.Errorf("the slots of a dead node are free after %v", after)
		}
		waits = lives.acquireLater(t, "a")
		time.Sleep(time.Minute)
		select {
		case <-waits:
			t.Error("a slot of the node that lives was taken")
		default:
		}
		own.Commit(llm.Tokens{})
		for _, res := range []*engine.Reservation{first, second, <-waits} {
			res.Commit(llm.Tokens{})
		}
	})
}
