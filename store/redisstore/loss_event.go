package redisstore

import (
	"sync"

	"dappco.re/go/core/go-ratelimit/store"
)

// Event tells of the way to Redis: see [store.Event].
type Event = store.Event

// EventKind is what happened.
type EventKind = store.EventKind

// The kinds of events.
const (
	Lost       = store.Lost
	Decided    = store.Decided
	Back       = store.Back
	Reconciled = store.Reconciled
)

// mostEvents is how many events wait for the observer.
const mostEvents = 256

// events passes events on in order, without holding up who tells of them. A
// goroutine runs while there are any.
type events struct {
	observe func(Event) // may be nil

	mu      sync.Mutex
	queue   []Event
	missed  int
	telling bool
}

func (e *events) tell(event Event) {
	if e.observe == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.join(event) {
		return
	}
	if len(e.queue) == mostEvents {
		e.missed++
		return
	}
	event.Missed, e.missed = e.missed, 0
	e.queue = append(e.queue, event)
	if !e.telling {
		e.telling = true
		go e.run()
	}
}

// join adds an event's amounts to the last event that waits, if it is of the same
// kind and these are all that they tell.
func (e *events) join(event Event) bool {
	if len(e.queue) == 0 || event.Kind != Reconciled && event.Kind != Decided {
		return false
	}
	last := &e.queue[len(e.queue)-1]
	if last.Kind != event.Kind {
		return false
	}
	last.Allowed += event.Allowed
	last.Denied += event.Denied
	last.Keys += event.Keys
	last.Charged += event.Charged
	return true
}

func (e *events) run() {
	for {
		e.mu.Lock()
		if len(e.queue) == 0 {
			e.telling = false
			e.mu.Unlock()
			return
		}
		event := e.queue[0]
		e.queue = e.queue[1:]
		e.mu.Unlock()
		e.observe(event)
	}
}
