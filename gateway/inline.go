package gateway

import (
	"cmp"
	"context"
	"sync"
)

// inLine is the context of a call that may have to wait: it ends with the client's, and
// when the gateway drains. The two are joined once somebody waits, which most calls do
// not.
type inLine struct {
	context.Context // the client's
	serving         context.Context

	once   sync.Once
	joined context.Context
	end    func()
}

// Done is [context.Context]'s.
func (l *inLine) Done() <-chan struct{} {
	l.once.Do(l.join)
	return l.joined.Done()
}

func (l *inLine) join() {
	ctx, cancel := context.WithCancel(l.Context)
	stop := context.AfterFunc(l.serving, cancel)
	l.joined, l.end = ctx, func() {
		stop()
		cancel()
	}
}

// Err is [context.Context]'s.
func (l *inLine) Err() error { return cmp.Or(l.Context.Err(), l.serving.Err()) }

// leave ends the wait.
func (l *inLine) leave() {
	l.once.Do(func() { l.joined = l.Context })
	if l.end != nil {
		l.end()
	}
}
