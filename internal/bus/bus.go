// Package bus carries small messages between the nodes that share a store, within milliseconds.
package bus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
)

// Bus is a store that carries messages between its nodes. Two stores of one process are two nodes.
//
// Messages are lost while the store is, and if a subscriber does not keep up. So a node that waits for
// one must also look for itself now and then. A message that is published while a subscription begins,
// or begins again after a lost connection, may arrive or not, and in a Redis cluster twice.
type Bus interface {
	// Publish sends a message of at most [MaxMessage] bytes to the subscribers of all other nodes.
	// It does not wait until they have received it. Messages of one node that are published one
	// after another arrive in this order.
	Publish(ctx context.Context, message []byte) error

	// Subscribe calls receive with each message of the other nodes, one call at a time, until
	// unsubscribe returns or the store is closed. receive must not call unsubscribe, which waits for
	// it. The error wraps errors.ErrUnsupported where nodes cannot send each other messages.
	Subscribe(receive func(message []byte)) (unsubscribe func(), err error)
}

// MaxMessage is the largest number of bytes of a message.
const MaxMessage = 32 << 10

// Check returns an error for a message that is too large.
func Check(message []byte) error {
	if len(message) > MaxMessage {
		return fmt.Errorf("ratelimit: a message of %d bytes: it may have at most %d", len(message), MaxMessage)
	}
	return nil
}

// queueLength is how many messages a subscriber may be behind. Further ones are lost.
const queueLength = 256

// Subscriptions are the subscriptions of one store. The zero Subscriptions are ready to use.
type Subscriptions struct {
	mu      sync.Mutex
	closed  bool
	ctx     context.Context // ends at Close; nil before the first subscription
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Add starts a subscription, unless the Subscriptions are closed. It runs listen on a goroutine, and
// calls receive on another one with the messages that listen delivers. listen must return when ctx
// ends; deliver never waits. end waits for both.
func (s *Subscriptions) Add(receive func(message []byte), listen func(ctx context.Context, deliver func(message []byte))) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	ctx, cancel := context.WithCancel(s.ctx)
	queue := make(chan []byte, queueLength)
	deliver := func(message []byte) {
		select {
		case queue <- message:
		default: // the subscriber does not keep up
		}
	}
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		var listening sync.WaitGroup
		listening.Go(func() { listen(ctx, deliver) })
		receiveAll(ctx, queue, receive)
		listening.Wait()
	})
	return func() {
		cancel()
		<-done
	}, true
}

func receiveAll(ctx context.Context, queue <-chan []byte, receive func(message []byte)) {
	for {
		select {
		case message := <-queue:
			receive(message)
		case <-ctx.Done():
			return
		}
	}
}

// Closed reports whether Close has been called.
func (s *Subscriptions) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends all subscriptions, and waits for them.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
	s.running.Wait()
}

var isolated atomic.Bool

// Isolate lets no node find others from now on. It is for tests on fake time, which stands still
// while a socket is read.
func Isolate() { isolated.Store(true) }

// Of returns a store as a bus, if it is one.
func Of(store any) (b Bus, ok bool) {
	if isolated.Load() {
		return nil, false
	}
	b = hidden.Of[Bus](store)
	return b, b != nil
}
