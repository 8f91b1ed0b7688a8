// Package fleettests has tests of several engines on one store, in real time.
package fleettests

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is an engine with a model and some projects, or with a project and some inside of it.
type node struct {
	*engine.Engine
	model    *engine.Scope // or the project above the others
	projects map[string]*engine.Scope
}

// newNodes returns engines on one store each, which are one store to the outside.
func newNodes(t *testing.T, open func() (store.Store, error), n int, rules func() *engine.Rules, weights map[string]int) []*node {
	return newNodesBelow(t, open, n, rules, weights, func(e *engine.Engine) (*engine.Scope, *engine.Scope) {
		return e.NewShared("m/", "m", nil), nil
	})
}

// newNodesBelow is newNodes with another scope that has the rules, and the one that is above the projects.
func newNodesBelow(t *testing.T, open func() (store.Store, error), n int, rules func() *engine.Rules, weights map[string]int,
	make func(e *engine.Engine) (divided, above *engine.Scope)) (list []*node) {
	for range n {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(engine.Config{Store: s, Owned: true, Clock: clock.New(), OnError: func(err error) { t.Error(err) }})
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		divided, above := make(e)
		each := &node{Engine: e, model: divided, projects: map[string]*engine.Scope{}}
		if err := e.SetRules(each.model, rules()); err != nil {
			t.Fatal(err)
		}
		for name, weight := range weights {
			p := e.NewBelow(above, "p/"+name+"/", name)
			if err := e.SetRules(p, &engine.Rules{Weight: weight}); err != nil {
				t.Fatal(err)
			}
			each.projects[name] = p
		}
		list = append(list, each)
	}
	return list
}

// acquire waits for a call of a project.
func (n *node) acquire(ctx context.Context, project string) (*engine.Reservation, error) {
	return n.acquireN(ctx, project, 1)
}

// acquireN is acquire for a call of n requests.
func (n *node) acquireN(ctx context.Context, project string, requests int) (*engine.Reservation, error) {
	c := &engine.Call{Requests: requests}
	var r engine.Result
	err := n.Acquire(ctx, c, engine.Scopes{n.projects[project], n.model}, &r)
	return r.Reservation, err
}

func eachStore(t *testing.T, test func(t *testing.T, open func() (store.Store, error))) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "counters.db")
		test(t, func() (store.Store, error) { return sqlitestore.Open(path) })
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.New(t)
		test(t, func() (store.Store, error) {
			return redisstore.New(redisstore.Config{URL: server.URL(), Timeout: 20 * time.Second})
		})
	})
}

// A quota is divided by weight among projects whose calls come to several nodes, however
// many workers each has.
func TestSharesHoldOverNodes(t *testing.T) {
	t.Parallel()
	sharesHold(t, newNodes)
}

// So is a limit of the project above them.
func TestSharesOfTheProjectAboveHoldOverNodes(t *testing.T) {
	t.Parallel()
	sharesHold(t, func(t *testing.T, open func() (store.Store, error), n int, rules func() *engine.Rules, weights map[string]int) []*node {
		return newNodesBelow(t, open, n, rules, weights, func(e *engine.Engine) (*engine.Scope, *engine.Scope) {
			above := e.NewOwn("p/acme/", "acme")
			return above, above
		})
	})
}

func sharesHold(t *testing.T, newNodes func(*testing.T, func() (store.Store, error), int, func() *engine.Rules, map[string]int) []*node) {
	const quota, windows, window = 60, 2, 6 * time.Second
	rules := func() *engine.Rules {
		log := limit.New(quota, window).Using(limit.SlidingLog)
		return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
	}
	weights := map[string]int{"search": 3, "chat": 2, "batch": 1}
	eachStore(t, func(t *testing.T, open func() (store.Store, error)) {
		const n = 4
		list := newNodes(t, open, n, rules, weights)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var mu sync.Mutex
		got, counting := map[string]float64{}, false
		work := func(at *node, project string, pause time.Duration) {
			group.Go(func() {
				for {
					res, err := at.acquire(ctx, project)
					if err != nil {
						return
					}
					res.Commit(llm.Tokens{})
					mu.Lock()
					if counting {
						got[project]++
					}
					mu.Unlock()
					select {
					case <-time.After(pause):
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for k := range 3 {
			work(list[k%n], "search", 40*time.Millisecond)
		}
		for k := range 2 {
			work(list[(k+1)%n], "chat", 40*time.Millisecond)
		}
		for k := range 20 {
			work(list[k%n], "batch", 0)
		}
		count := func(yes bool) {
			mu.Lock()
			defer mu.Unlock()
			counting = yes
		}
		time.Sleep(2 * window) // in the first window nobody knows who comes
		count(true)
		time.Sleep(windows * window)
		count(false)
		cancel()
		group.Wait()
		all := got["search"] + got["chat"] + got["batch"]
		t.Logf("%v of %d", got, quota*windows)
		for name, weight := range weights {
			if part, due := got[name]/all, float64(weight)/6; math.Abs(part-due) > .12 { // a busy machine costs some points: without shares it would be 70
				t.Errorf("%s has %.3f of all, want %.3f", name, part, due)
			}
		}
		if all > quota*(windows+1) {
			t.Errorf("%v calls in %d windows of %d", all, windows, quota)
		}
	})
}

// What one node gives back lets a call pass that waits on another, long before it would ask again by itself.
func TestGivenBackWakesOtherNodes(t *testing.T) {
	rules := func() *engine.Rules {
		return &engine.Rules{Limits: []engine.Limit{{Name: "concurrent", Unit: engine.Slots, Limit: engine.AtATime(1)}}}
	}
	eachStore(t, func(t *testing.T, open func() (store.Store, error)) {
		list := newNodes(t, open, 2, rules, map[string]int{"a": 1, "b": 1})
		held, err := list[0].acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		waits := time.Duration(0)
		const rounds = 10
		for round := range rounds {
			next := list[(round+1)%2]
			passed := make(chan *engine.Reservation, 1)
			go func() {
				res, err := next.acquire(t.Context(), "b")
				if err != nil {
					t.Error(err)
				}
				passed <- res
			}()
			for next.model.Waiting() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond) // so that the other node knows of it
			start := time.Now()
			held.Commit(llm.Tokens{})
			held = <-passed
			waits += time.Since(start)
		}
		held.Cancel()
		t.Logf("a call that waits on another node passes after %v on average", waits/rounds)
		if waits/rounds > engine.SlotGuess/4 {
			t.Errorf("a call that waits on another node passes after %v on average: it asks again by itself after %v", waits/rounds, engine.SlotGuess)
		}
	})
}
