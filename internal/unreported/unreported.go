// Package unreported keeps errors of work that no caller waits for, until a caller asks.
package unreported

import "sync"

// Error keeps the first error since the last call of Take. The zero Error has none. Its
// methods may be called concurrently.
type Error struct {
	OnError func(error) // called with every error that is passed to Keep; may be nil

	mu    sync.Mutex
	first error
}

// Keep keeps an error, unless there is one already. It does nothing for nil.
func (e *Error) Keep(err error) {
	if err == nil {
		return
	}
	if e.OnError != nil {
		e.OnError(err)
	}
	e.keep(err)
}

// KeepAtOnce is Keep for a caller that others wait for: OnError is called on a goroutine of its own.
func (e *Error) KeepAtOnce(err error) {
	if e.OnError != nil {
		go e.OnError(err)
	}
	e.keep(err)
}

func (e *Error) keep(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == nil {
		e.first = err
	}
}

// Take returns the error that is kept, or nil, and forgets it.
func (e *Error) Take() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.first
	e.first = nil
	return err
}
