// Package memorybus has stores in memory that carry messages, for tests of several nodes on fake time.
package memorybus

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Bus connects stores in memory as SQLite and Redis connect theirs. Each is the store of a node.
type Bus struct {
	Asks atomic.Int64 // how often nodes have asked the store

	all   *store.Memory
	mu    sync.Mutex
	nodes []*node
}

// delay is how long a take takes, and a message from one node to another.
const delay = time.Millisecond

// New returns a bus without nodes.
func New() *Bus { return &Bus{all: store.NewMemory()} }

// Open returns the store of another node, and no error.
func (b *Bus) Open() (store.Store, error) {
	n := &node{Store: b.all, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = append(b.nodes, n)
	return n, nil
}

// Kill ends the process of a node, by the order in which their stores were opened: it asks and reports nothing any more.
func (b *Bus) Kill(i int) { b.nodes[i].dead.Store(true) }

// node is the store of one node.
type node struct {
	store.Store
	bus   *Bus
	dead  atomic.Bool
	queue chan []byte // nil before the node subscribes; the lock of the bus guards it
}

var _ bus.Bus = (*node)(nil)

// Close leaves the store to the other nodes.
func (n *node) Close() error { return nil }

func (n *node) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	n.bus.Asks.Add(1)
	time.Sleep(delay)
	if n.dead.Load() {
		return nil, nil, store.ErrClosed
	}
	return n.Store.Take(ctx, charges)
}

// Renew renews slots as the stores do that nodes share.
func (n *node) Renew(ctx context.Context, r store.Receipt, places []int) (store.Receipt, error) {
	time.Sleep(delay)
	if n.dead.Load() {
		return nil, store.ErrClosed
	}
	return hidden.Of[accounts.Renewer](n.Store).Renew(ctx, r, places)
}

func (n *node) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	n.bus.Asks.Add(1)
	return n.Store.Peek(ctx, charges)
}

func (n *node) Publish(_ context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	n.bus.mu.Lock()
	defer n.bus.mu.Unlock()
	for _, other := range n.bus.nodes {
		if other == n || other.queue == nil || n.dead.Load() {
			continue
		}
		other.queue <- bytes.Clone(message)
	}
	return nil
}

func (n *node) Subscribe(receive func([]byte)) (func(), error) {
	queue := make(chan []byte, 256)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for message := range queue {
			time.Sleep(delay)
			receive(message)
		}
	})
	set := func(q chan []byte) {
		n.bus.mu.Lock()
		defer n.bus.mu.Unlock()
		n.queue = q
	}
	set(queue)
	return func() {
		set(nil)
		close(queue)
		receiving.Wait()
	}, nil
}
