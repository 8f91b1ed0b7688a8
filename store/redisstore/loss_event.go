package redisstore

import (
	"sync"

	"dappco.re/go/core/go-ratelimit/store"
)

// maxEvents is how many events may wait for the observer.
const maxEvents = 256

// events passes events to the observer in order, without blocking callers. It has a goroutine while
// events wait.
type events struct {
	observe func(store.Event) // may be nil

	mu      sync.Mutex
	queue   []store.Event
	missed  int  // the number of events that were dropped since the last one that was queued
	running bool // a goroutine passes events on
}

func (e *events) send(event store.Event) {
	if e.observe == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.merge(event) {
		return
	}
	if len(e.queue) == maxEvents {
		e.missed++
		return
	}
	event.Missed, e.missed = e.missed, 0
	e.queue = append(e.queue, event)
	if !e.running {
		e.running = true
		go e.run()
	}
}

// merge adds an event's amounts to the last event in the queue, if it is of the same kind and has
// nothing but amounts.
func (e *events) merge(event store.Event) bool {
	if len(e.queue) == 0 || event.Kind != store.Reconciled && event.Kind != store.Decided {
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
			e.running = false
			e.mu.Unlock()
			return
		}
		event := e.queue[0]
		e.queue = e.queue[1:]
		e.mu.Unlock()
		e.observe(event)
	}
}
