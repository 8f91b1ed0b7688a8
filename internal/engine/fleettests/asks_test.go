package fleettests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/engine/fleettests/memorybus"
	"dappco.re/go/core/go-ratelimit/limit"
)

// A call that waits because its share denies it looks ten times a second whether it may pass, and asks
// the store once in some seconds.
func TestWaitingForAShareRarelyAsksTheStore(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		list := newNodes(t, b.Open, 2, func() *engine.Rules {
			log := limit.New(100, time.Minute).Using(limit.SlidingLog)
			return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
		}, map[string]int{"a": 1, "b": 1})
		take := func(ctx context.Context, at *node, project string, n int) error {
			_, err := at.acquireN(ctx, project, n)
			return err
		}
		for k, project := range []string{"b", "a", "b"} { // until both nodes know both projects
			if err := take(t.Context(), list[k%2], project, 10); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- take(ctx, list[1], "a", 80) }() // gathers what it needs
		time.Sleep(100 * time.Millisecond)                   // so that the other node knows of it
		go func() { ended <- take(ctx, list[0], "b", 62) }()
		time.Sleep(200 * time.Millisecond) // it has asked in its turn
		const seconds = 20
		before := b.Asks.Load()
		time.Sleep(seconds * time.Second)
		if asked := b.Asks.Load() - before; asked > 2*seconds {
			t.Errorf("the store was asked %d times in %d s", asked, seconds)
		} else {
			t.Logf("the store was asked %d times in %d s", asked, seconds)
		}
		cancel()
		synctest.Wait()
		for range cap(ended) {
			if err := <-ended; err == nil {
				t.Error("a call has passed that should have waited")
			}
		}
	})
}

// A project that calls more than it has before, on two nodes at one moment, has what is free: neither node knows what the
// other one admits, so the store says that the project has used more than its share, which nobody else wants.
func TestWhatIsFreeIsLentToWhoCallsOnTwoNodesAtOnce(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		list := newNodes(t, b.Open, 2, func() *engine.Rules {
			log := limit.New(100_000, time.Minute).Using(limit.SlidingLog)
			return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
		}, map[string]int{"a": 1, "b": 1, "new": 1})
		try := func(k int, project string) {
			t.Helper()
			var r engine.Result
			if err := list[k].Try(t.Context(), &engine.Call{Requests: 1}, list[k].scopes(project), &r); err != nil || r.Reservation == nil {
				t.Fatalf("a call of %s is denied on node %d although nearly nothing is used: %+v, %v", project, k, r.Outcome, err)
			}
		}
		for range 18 {
			for k := range list {
				try(k, "a")
				try(k, "b")
			}
			time.Sleep(10 * time.Second)
		}
		try(0, "new")
		time.Sleep(time.Second)
		for range 20 {
			for k := range list {
				try(k, "a")
			}
		}
	})
}
