package fleettests

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// wire connects stores in memory as SQLite and Redis connect theirs, for tests on fake time.
type wire struct {
	all  *store.Memory
	asks atomic.Int64 // how often nodes have asked the store

	mu    sync.Mutex
	nodes []*onWire
}

// delay is how long a take takes, and a message from one node to another.
const delay = time.Millisecond

// onFakeTime runs a test of nodes that share a store in memory, on fake time.
func onFakeTime(t *testing.T, test func(t *testing.T, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &wire{all: store.NewMemory()}) })
}

// open returns the store of another node.
func (w *wire) open() (store.Store, error) {
	n := &onWire{Store: w.all, wire: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = append(w.nodes, n)
	return n, nil
}

// onWire is the store of one node.
type onWire struct {
	store.Store
	wire  *wire
	dead  atomic.Bool // its process was killed: it asks and says nothing any more
	queue chan []byte // nil before the node subscribes; the lock of the wire guards it
}

var _ bus.Bus = (*onWire)(nil)

// Close leaves the store to the other nodes.
func (n *onWire) Close() error { return nil }

func (n *onWire) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	n.wire.asks.Add(1)
	time.Sleep(delay)
	if n.dead.Load() {
		return nil, nil, store.ErrClosed
	}
	return n.Store.Take(ctx, charges)
}

// Renew renews slots as the stores do that nodes share.
func (n *onWire) Renew(ctx context.Context, r store.Receipt, places []int) (store.Receipt, error) {
	time.Sleep(delay)
	if n.dead.Load() {
		return nil, store.ErrClosed
	}
	return hidden.Of[accounts.Renewer](n.Store).Renew(ctx, r, places)
}

func (n *onWire) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	n.wire.asks.Add(1)
	return n.Store.Peek(ctx, charges)
}

func (n *onWire) Publish(_ context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	n.wire.mu.Lock()
	defer n.wire.mu.Unlock()
	for _, other := range n.wire.nodes {
		if other != n && other.queue != nil {
			other.queue <- bytes.Clone(message)
		}
	}
	return nil
}

func (n *onWire) Subscribe(receive func([]byte)) (func(), error) {
	queue := make(chan []byte, 256)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for message := range queue {
			time.Sleep(delay)
			receive(message)
		}
	})
	set := func(q chan []byte) {
		n.wire.mu.Lock()
		defer n.wire.mu.Unlock()
		n.queue = q
	}
	set(queue)
	return func() {
		set(nil)
		close(queue)
		receiving.Wait()
	}, nil
}
