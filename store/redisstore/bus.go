package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/store"
)

// channel is a Redis channel on which nodes with the same namespace send each other messages. Each
// message begins with the id of its sender, which does not receive it.
type channel struct {
	id            string
	subscriptions bus.Subscriptions
	silentUntil   atomic.Int64 // Unix nanoseconds until which Publish does not ask Redis
}

var _ bus.Bus = internals{}

func (s *Store) channelName() string { return s.namespace + ":bus" }

// silence is how long Publish does not ask a server that has not answered it in time.
const silence = time.Second

// Publish implements [bus.Bus]. It returns once Redis has the message. While Redis is lost it fails
// with [ErrLost]: at once, but for one call a second, which waits for the store's timeout.
func (s internals) Publish(ctx context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	if s.channel.subscriptions.Closed() {
		return store.ErrClosed
	}
	if time.Now().UnixNano() < s.channel.silentUntil.Load() {
		return fmt.Errorf("%w: it did not answer the last message within %v", ErrLost, s.timeout)
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// The channel's name is used as a key, so that in a cluster all messages pass through one node, and
	// stay in order.
	publish := s.client.B().Arbitrary("PUBLISH").Keys(s.channelName()).Args(s.channel.id + string(message)).Build()
	err := s.client.Do(within, publish).Error()
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) { // also of a new connection
		<-within.Done() // the client returns a moment earlier, when it is not known yet whose time is over
	}
	if within.Err() != nil && ctx.Err() == nil {
		s.channel.silentUntil.Store(time.Now().Add(silence).UnixNano())
	}
	return commandError(ctx, err)
}

// Subscribe implements [bus.Bus]. After a lost connection it subscribes again by itself. It returns
// once the subscription has begun, but waits for that no longer than the store's timeout.
func (s internals) Subscribe(receive func(message []byte)) (unsubscribe func(), err error) {
	begun := make(chan struct{})
	subscribed := sync.OnceFunc(func() { close(begun) })
	unsubscribe, ok := s.channel.subscriptions.Add(receive, func(ctx context.Context, deliver func([]byte)) {
		s.subscribe(ctx, s.channelName(), subscribed, func(text string) {
			if message, ok := s.channel.fromOther(text); ok {
				deliver([]byte(message))
			}
		})
	})
	if !ok {
		return nil, store.ErrClosed
	}
	select {
	case <-begun:
	case <-time.After(s.timeout):
	}
	return unsubscribe, nil
}

// fromOther returns the message of another node, without the node's id. It reports false for
// messages of this node, and for texts that are no messages.
func (c *channel) fromOther(text string) (message string, ok bool) {
	if len(text) < len(c.id) || len(text) > len(c.id)+bus.MaxMessage || strings.HasPrefix(text, c.id) {
		return "", false
	}
	return text[len(c.id):], true
}
