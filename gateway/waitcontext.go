package gateway

import (
	"cmp"
	"context"
	"sync"
)

// waitContext is the context of a request that may have to wait for its limits. It ends when
// the client's context ends, and when the gateway drains. The two contexts are joined only
// when the limiter asks for Done, because most requests do not wait.
type waitContext struct {
	context.Context                 // ends when the client leaves
	serving         context.Context // ends when the gateway drains

	once    sync.Once
	joined  context.Context // nil: Done was not called
	release func()          // frees joined
}

// Done implements [context.Context].
func (w *waitContext) Done() <-chan struct{} {
	w.once.Do(func() {
		ctx, cancel := context.WithCancel(w.Context)
		stop := context.AfterFunc(w.serving, cancel)
		w.joined, w.release = ctx, func() {
			stop()
			cancel()
		}
	})
	return w.joined.Done()
}

// Err implements [context.Context].
func (w *waitContext) Err() error { return cmp.Or(w.Context.Err(), w.serving.Err()) }

// Value implements [context.Context]. It lets derived contexts find the standard library's context
// that cancels them. Otherwise each would need a goroutine to watch this one.
func (w *waitContext) Value(key any) any { return cmp.Or(w.joined, w.Context).Value(key) }

// end frees what Done has allocated.
func (w *waitContext) end() {
	if w.release != nil {
		w.release()
	}
}
