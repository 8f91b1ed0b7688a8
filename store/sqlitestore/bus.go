package sqlitestore

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/store"
)

// messenger is a store's part in the messages between processes.
type messenger struct {
	path          string // the absolute path of the file
	id            string // the names of the store's own sockets begin with it
	subscriptions bus.Subscriptions
	peers         peers
}

const idLength = 13 // 65 random bits

var _ bus.Bus = internals{}

// Publish implements [bus.Bus]. It waits at most for a millisecond for another process that does not
// read its messages, and then not again until that process has read some.
func (s internals) Publish(ctx context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not published: %w", err)
	}
	s.messenger.peers.mu.Lock()
	defer s.messenger.peers.mu.Unlock()
	if s.closed.Load() {
		return store.ErrClosed
	}
	return s.describe(s.publish(message))
}

// Subscribe implements [bus.Bus]. The messages come through a socket beside the file. The error wraps
// errors.ErrUnsupported where there cannot be one.
func (s internals) Subscribe(receive func(message []byte)) (unsubscribe func(), err error) {
	if s.closed.Load() {
		return nil, store.ErrClosed
	}
	in, err := s.newInbox()
	if err != nil {
		return nil, s.describe(err)
	}
	unsubscribe, ok := s.messenger.subscriptions.Add(receive, in.listen)
	if !ok {
		in.close()
		return nil, store.ErrClosed
	}
	return unsubscribe, nil
}
