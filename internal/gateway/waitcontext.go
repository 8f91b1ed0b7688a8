package gateway

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// waitContext is the context of a request that may have to wait for its limits. It ends when
// the client's context ends, when the gateway drains, when an operator pauses the request, and when
// its virtual key ends. They are joined only when the limiter asks for Done, because most requests do
// not wait. From then on, the client gets signs of life.
type waitContext struct {
	context.Context           // ends when the client leaves
	x               *exchange // the request

	ended   atomic.Bool // by a pause, or by the end of the key
	once    sync.Once
	joined  context.Context // nil: Done was not called
	release func()          // frees joined
}

// Done implements [context.Context].
func (w *waitContext) Done() <-chan struct{} {
	w.once.Do(func() {
		ctx, cancel := context.WithCancel(w.Context)
		stop := context.AfterFunc(w.x.g.serving, cancel)
		end := func() {
			w.ended.Store(true)
			cancel()
		}
		unwatch := w.x.g.controls.Watch(func(s *control.State) {
			if w.x.isPaused(s) {
				end()
			}
		})
		unwatchKey := w.x.watchKey(end)
		endSigns := w.x.sendSigns()
		w.joined, w.release = ctx, func() {
			endSigns()
			unwatchKey()
			unwatch()
			stop()
			cancel()
		}
	})
	return w.joined.Done()
}

// Err implements [context.Context].
func (w *waitContext) Err() error {
	if w.ended.Load() {
		return context.Canceled
	}
	return cmp.Or(w.Context.Err(), w.x.g.serving.Err())
}

// Value implements [context.Context]. It lets derived contexts find the standard library's context
// that cancels them. Otherwise each would need a goroutine to watch this one.
func (w *waitContext) Value(key any) any { return cmp.Or(w.joined, w.Context).Value(key) }

// end frees what Done has allocated.
func (w *waitContext) end() {
	if w.release != nil {
		w.release()
	}
}
