package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

var _ accounts.Later = internals{}

// maxLater is how long the op of a settlement that nobody waits for stays in its queue while nothing else is to be sent.
const maxLater = 2 * time.Millisecond

// laters are the settlements that nobody waits for. Each has a goroutine that sends it and waits for the answer, as
// Settle does.
type laters struct {
	hold time.Duration // how long their ops stay in a queue while nothing else is to be sent
	mu   sync.Mutex
	all  map[*later]bool
}

// later is a settlement that nobody waits for. Its context carries it to the link.
type later struct {
	once   sync.Once
	queued chan struct{} // closed when its op is in the queue
	done   chan struct{} // closed when it is made, or has failed
}

type laterKey struct{}

// laterOf returns the settlement that a context is of, or nil.
func laterOf(ctx context.Context) *later {
	l, _ := ctx.Value(laterKey{}).(*later)
	return l
}

// start runs settle on a goroutine, with the context of a settlement that nobody waits for. It returns when the op of the
// settlement is in its queue, so that all ops that come later are sent after it.
func (a *laters) start(settle func(context.Context)) {
	l := &later{queued: make(chan struct{}), done: make(chan struct{})}
	a.mu.Lock()
	if a.all == nil {
		a.all = map[*later]bool{}
	}
	a.all[l] = true
	a.mu.Unlock()
	go func() {
		settle(context.WithValue(context.Background(), laterKey{}, l))
		l.isQueued() // unless it has failed before
		a.mu.Lock()
		delete(a.all, l)
		a.mu.Unlock()
		close(l.done)
	}()
	<-l.queued
}

// isQueued notes that the op of the settlement is in its queue. That of nil has no effect.
func (l *later) isQueued() {
	if l != nil {
		l.once.Do(func() { close(l.queued) })
	}
}

// underWay returns the settlements that are under way.
func (a *laters) underWay() []*later {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.all))
}

// SettleLater implements [accounts.Later]. In a cluster, and if Redis need not be asked, it settles at once.
func (s internals) SettleLater(r store.Receipt, actual []int64, e *books.Entry, done func(error)) {
	settle := func(ctx context.Context) error {
		if e == nil {
			return s.top.Settle(ctx, r, actual)
		}
		return s.books.settle(ctx, s.top, r, actual, e)
	}
	own, ok := r.(*receipt)
	switch {
	case !ok || own.remote.cluster || !own.corrects(actual):
		done(settle(context.Background()))
	case !own.later.CompareAndSwap(false, true): // another settlement has come before
		done(nil)
	default:
		s.books.link.later.start(func(ctx context.Context) {
			err := settle(ctx)
			own.later.Store(err == nil)
			done(err)
		})
	}
}

// AwaitSettled implements [accounts.Later].
func (s internals) AwaitSettled() { s.books.link.awaitSettled() }

// awaitSettled sends the settlements that nobody waits for, and waits until they are made or have failed.
func (l *link) awaitSettled() {
	l.release(&l.queues[0], 0) // in a cluster there are none
	for _, one := range l.later.underWay() {
		<-one.done
	}
}
