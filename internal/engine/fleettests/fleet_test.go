// Package fleettests has tests of several engines on one store, in real time.
package fleettests

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/engine/fleettests/memorybus"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is an engine with a model and some projects, or with a project and some below it.
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
	err := n.Acquire(ctx, c, n.scopes(project), &r)
	return r.Reservation, err
}

// scopes returns what a call of a project is charged to.
func (n *node) scopes(project string) engine.Scopes {
	list := n.projects[project].Append(nil)
	if n.model.Kind == engine.Shared {
		list = append(list, n.model)
	}
	return list
}

// acquireLater is acquire on a goroutine, for a call that has to wait. It returns when the call waits.
func (n *node) acquireLater(t *testing.T, project string) <-chan *engine.Reservation {
	t.Helper()
	passed := make(chan *engine.Reservation, 1)
	go func() {
		res, err := n.acquire(t.Context(), project)
		if err != nil {
			t.Error(err)
		}
		passed <- res
	}()
	testkit.Eventually(t, "a call waits", func() bool { return n.model.Waiting() > 0 })
	return passed
}

// onFakeTime runs a test of nodes that share a store in memory, on fake time.
func onFakeTime(t *testing.T, test func(t *testing.T, b *memorybus.Bus)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memorybus.New()) })
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

// makeNodes is newNodes, or newNodesBelow with a scope.
type makeNodes func(t *testing.T, open func() (store.Store, error), n int, rules func() *engine.Rules, weights map[string]int) []*node

// sharesHold expects that the parts of projects are near to their shares, on fake time: not exactly, because what a window
// gives back comes at one moment, at which nodes decide before they have heard of one another. On real stores it expects
// that the project with most workers, which would have 80% without shares, has less than half: how near the others come
// to their shares depends on how soon a busy machine lets their workers call again.
func sharesHold(t *testing.T, newNodes makeNodes) {
	t.Run("fake time", func(t *testing.T) {
		onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
			for name, part := range divided(t, b.Open, newNodes, time.Minute, 8) {
				if due := float64(weights[name]) / 6; math.Abs(part-due) > .08 { // half of that was measured
					t.Errorf("%s has %.3f of all, want %.3f", name, part, due)
				}
			}
		})
	})
	eachStore(t, func(t *testing.T, open func() (store.Store, error)) {
		t.Parallel()
		if part := divided(t, open, newNodes, 2*time.Second, 2)["batch"]; part > .5 {
			t.Errorf("batch has %.3f of all, want %.3f", part, 1./6)
		}
	})
}

var weights = map[string]int{"search": 3, "chat": 2, "batch": 1}

// divided returns the part of a quota that each project has had, in some windows, of nodes that share a store.
func divided(t *testing.T, open func() (store.Store, error), newNodes makeNodes, window time.Duration, windows int) map[string]float64 {
	const quota, n = 60, 4
	list := newNodes(t, open, n, func() *engine.Rules {
		log := limit.New(quota, window).Using(limit.SlidingLog)
		return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
	}, weights)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var mu sync.Mutex
	got, counting := map[string]float64{}, false
	for project, workers := range map[string]int{"search": 3, "chat": 2, "batch": 20} {
		for k := range workers {
			group.Go(func() {
				for {
					res, err := list[k%n].acquire(ctx, project)
					if err != nil {
						return
					}
					res.Commit(llm.Tokens{})
					mu.Lock()
					if counting {
						got[project]++
					}
					mu.Unlock()
				}
			})
		}
	}
	count := func(yes bool) {
		mu.Lock()
		defer mu.Unlock()
		counting = yes
	}
	time.Sleep(2 * window) // in the first window nobody knows who comes
	count(true)
	time.Sleep(time.Duration(windows) * window)
	count(false)
	cancel()
	group.Wait()
	all := got["search"] + got["chat"] + got["batch"]
	t.Logf("%v of %d", got, quota*windows)
	if int(all) > quota*(windows+1) {
		t.Errorf("%v calls in %d windows of %d", all, windows, quota)
	}
	for project := range got {
		got[project] /= all
	}
	return got
}

// What one node gives back lets a call pass that waits on another, which would not ask again by itself for an hour.
func TestGivenBackWakesOtherNodes(t *testing.T) {
	rules := func() *engine.Rules {
		log := limit.New(1, time.Hour).Using(limit.SlidingLog)
		return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
	}
	eachStore(t, func(t *testing.T, open func() (store.Store, error)) {
		list := newNodes(t, open, 2, rules, map[string]int{"a": 1})
		held, err := list[0].acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for round := range 4 {
			last, next := list[round%2], list[(round+1)%2]
			passed := next.acquireLater(t, "a")
			held.Cancel()
			testkit.Eventually(t, "the call passes", func() bool {
				select {
				case held = <-passed:
					return true
				default:
				}
				var r engine.Result // the node may not have known that a call waits elsewhere: it gives back something again
				if err := last.Try(t.Context(), &engine.Call{Requests: 1}, engine.Scopes{last.projects["a"], last.model}, &r); err != nil {
					t.Fatal(err)
				}
				if r.Allowed() {
					r.Reservation.Cancel()
				}
				return false
			})
		}
		held.Cancel()
	})
}

// A slot that one node gives back is taken by a call that waits on another within milliseconds, and not when that call
// would ask again by itself.
func TestAFreeSlotWakesOtherNodes(t *testing.T) {
	onFakeTime(t, func(t *testing.T, b *memorybus.Bus) {
		list := newNodes(t, b.Open, 2, func() *engine.Rules {
			return &engine.Rules{Limits: []engine.Limit{{Name: "concurrent", Unit: engine.Slots, Limit: engine.AtATime(1)}}}
		}, map[string]int{"a": 1, "b": 1})
		held, err := list[0].acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for round := range 10 {
			passed := list[(round+1)%2].acquireLater(t, "b")
			time.Sleep(50 * time.Millisecond) // the other node knows of it
			start := time.Now()
			held.Commit(llm.Tokens{})
			held = <-passed
			if waited := time.Since(start); waited > 5*time.Millisecond {
				t.Errorf("a call that waits on another node passes after %v", waited)
			}
		}
		held.Cancel()
	})
}
