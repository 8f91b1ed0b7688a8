package gateway

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
)

// waitContext is the context of a request that may have to wait for its limits. It ends when
// the client's context ends, and when the gateway drains. The two contexts are joined only
// when somebody asks for Done, because most requests do not wait.
type waitContext struct {
	context.Context // the client's
	serving         context.Context

	once   sync.Once
	joined atomic.Pointer[joinedContext] // nil: Done was not called
}

// joinedContext ends with both contexts.
type joinedContext struct {
	context.Context
	release func()
}

// Done is [context.Context]'s.
func (w *waitContext) Done() <-chan struct{} {
	w.once.Do(w.join)
	if j := w.joined.Load(); j != nil {
		return j.Done()
	}
	return w.Context.Done()
}

func (w *waitContext) join() {
	ctx, cancel := context.WithCancel(w.Context)
	stop := context.AfterFunc(w.serving, cancel)
	w.joined.Store(&joinedContext{ctx, func() {
		stop()
		cancel()
	}})
}

// Err is [context.Context]'s.
func (w *waitContext) Err() error { return cmp.Or(w.Context.Err(), w.serving.Err()) }

// Value is [context.Context]'s. It lets derived contexts find the standard library's context
// that cancels them. Otherwise each would need a goroutine to watch this one.
func (w *waitContext) Value(key any) any {
	if j := w.joined.Load(); j != nil {
		return j.Value(key)
	}
	return w.Context.Value(key)
}

// release frees what Done has allocated. Later calls of Done do not join the contexts.
func (w *waitContext) release() {
	w.once.Do(func() {})
	if j := w.joined.Load(); j != nil {
		j.release()
	}
}
