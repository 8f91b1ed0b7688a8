package gateway

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
)

// inLine is the context of a call that may have to wait: it ends with the client's, and
// when the gateway drains. The two are joined once somebody waits, which most calls do
// not.
type inLine struct {
	context.Context // the client's
	serving         context.Context

	once   sync.Once
	joined atomic.Pointer[joined] // nil: nobody has waited
}

// joined is a context that ends with both.
type joined struct {
	context.Context
	end func()
}

// Done is [context.Context]'s.
func (l *inLine) Done() <-chan struct{} {
	l.once.Do(l.join)
	if j := l.joined.Load(); j != nil {
		return j.Done()
	}
	return l.Context.Done()
}

func (l *inLine) join() {
	ctx, cancel := context.WithCancel(l.Context)
	stop := context.AfterFunc(l.serving, cancel)
	l.joined.Store(&joined{ctx, func() {
		stop()
		cancel()
	}})
}

// Err is [context.Context]'s.
func (l *inLine) Err() error { return cmp.Or(l.Context.Err(), l.serving.Err()) }

// Value is [context.Context]'s. Contexts below find the one in it that ends them, or each
// would need a goroutine to watch this one.
func (l *inLine) Value(key any) any {
	if j := l.joined.Load(); j != nil {
		return j.Value(key)
	}
	return l.Context.Value(key)
}

// leave ends the wait. Who has not waited so far does not any more.
func (l *inLine) leave() {
	l.once.Do(func() {})
	if j := l.joined.Load(); j != nil {
		j.end()
	}
}
