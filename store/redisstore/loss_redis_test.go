package redisstore

import (
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// cutNode is a store whose connection to the server can be cut.
type cutNode struct {
	*Store
	proxy  *redistest.Proxy
	events chan store.Event
}

func newCutNode(t testing.TB, server *redistest.Server, mode StoreLoss) *cutNode {
	t.Helper()
	c := &cutNode{proxy: redistest.NewProxy(t, server.Addr), events: make(chan store.Event, 1000)}
	var err error
	c.Store, err = New(Config{ // a server that is there answers within the timeout, however busy the machine is
		URL: c.proxy.URL(), Namespace: t.Name(), Timeout: 3 * time.Second, OnStoreLoss: mode, OnEvent: func(e store.Event) { c.events <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *cutNode) fallback() *fallback { return c.top.(*fallback) }

// await returns the next event of a kind.
func (c *cutNode) await(t testing.TB, kind store.EventKind) store.Event {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case e := <-c.events:
			if e.Kind == kind {
				return e
			}
		case <-late:
			t.Fatalf("nothing was %s", kind)
		}
	}
}

// awaitRecovery waits until the node knows that all others have charged the server.
func (c *cutNode) awaitRecovery(t testing.TB) {
	t.Helper()
	for late := time.Now().Add(time.Minute); c.fallback().nodes.recovery.underWay(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the node has not recovered within a minute")
		}
	}
}

// all takes one after another until it is denied, and returns how many passed.
func (c *cutNode) all(t testing.TB, l limit.Limit) (n int64) {
	t.Helper()
	for {
		r, _, err := c.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return n
		}
		n++
	}
}

// Two nodes that lose a real server continue from its state, each with its half, and afterwards the
// server knows of everything.
func TestShareOfRedis(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range map[string]limit.Limit{
		"log":   limit.PerHour(100).Using(limit.SlidingLog),
		"fixed": limit.New(100, 1000*time.Hour).Using(limit.FixedWindow),
		"gcra":  limit.New(100, 1000*time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both := []*cutNode{newCutNode(t, server, Share), newCutNode(t, server, Share)}
			for _, c := range both {
				c.fallback().nodes.announceOnce(t.Context())
			}
			charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 40}}
			r, _, err := both[0].Take(t.Context(), charges)
			if err != nil || r == nil {
				t.Fatal(err)
			}
			charges[0].N = 0
			if _, err := both[1].Peek(t.Context(), charges); err != nil {
				t.Fatal(err)
			}
			for _, c := range both {
				c.proxy.Cut()
			}
			for i, c := range both {
				if got := c.all(t, l); got != 30 {
					t.Errorf("%d have passed at node %d; want its half of 60", got, i)
				}
				if e := c.await(t, store.Lost); e.Mode != Share || e.Nodes != 2 || !errors.Is(e.Err, ErrLost) {
					t.Errorf("%+v", e)
				}
			}
			if err := both[0].Settle(t.Context(), r, []int64{39}); !errors.Is(err, ErrLost) {
				t.Errorf("settled what is Redis's, without it: %v", err)
			}
			for _, c := range both {
				c.proxy.Heal()
				c.await(t, store.Back)
				if e := c.await(t, store.Reconciled); e.Keys != 1 || e.Charged < 30 || e.Charged > 31 {
					t.Errorf("%+v", e)
				}
			}
			if got := both[0].all(t, l); got != 0 {
				t.Errorf("%d have passed after all were used", got)
			}
			for _, c := range both {
				c.awaitRecovery(t)
			}
			if err := both[0].Settle(t.Context(), r, []int64{30}); err != nil {
				t.Error(err)
			}
			if got := both[1].all(t, l); got < 8 || got > 10 {
				t.Errorf("%d have passed after 10 were given back", got)
			}
		})
	}
}

func TestAllowWithoutRedis(t *testing.T) {
	t.Parallel()
	l := limit.PerHour(10).Using(limit.SlidingLog)
	c := newCutNode(t, redistest.New(t), Allow)
	c.proxy.Cut()
	for range 3 {
		r, _, err := c.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 5}})
		if err != nil || r == nil {
			t.Fatal(err)
		}
	}
	c.proxy.Heal()
	if e := c.await(t, store.Reconciled); e.Charged != 15 {
		t.Errorf("%+v", e)
	}
	if got := c.all(t, l); got != 0 {
		t.Errorf("%d have passed", got)
	}
}
