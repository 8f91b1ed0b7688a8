package redisstore

import "sync"

// EventKind is what has happened.
type EventKind string

// The kinds of events.
const (
	Lost       EventKind = "lost"       // Redis, or a part of a cluster, cannot be asked
	Decided    EventKind = "decided"    // takes were decided without Redis; about once a second
	Back       EventKind = "back"       // Redis can be asked again
	Reconciled EventKind = "reconciled" // Redis was charged for what was admitted without it
)

// Event is about the connection to Redis. Events are for metrics and logs: each Lost is followed by
// a Back of the same Group, unless the store is closed before.
type Event struct {
	Kind EventKind

	// Mode is what the store does while Redis is lost.
	Mode StoreLoss

	// Group is the part of a cluster that is lost or back: each of 64 groups has 256 hash slots. It
	// is 0 without a cluster.
	Group int

	// Nodes is the number of nodes that share the limits, with [Share]: 0 before this node knows
	// it.
	Nodes int

	// Err is why Redis is lost. It wraps [ErrLost].
	Err error

	// Allowed and Denied are how many takes were decided without Redis, since the last event of
	// that kind.
	Allowed, Denied int64

	// Keys is how many keys were reconciled, and Charged how much in all.
	Keys    int
	Charged int64

	// Missed is how many events before this one were dropped, because the observer had not returned
	// from earlier ones.
	Missed int
}

// maxEvents is how many events wait for the observer.
const maxEvents = 256

// events passes events on in order, without blocking the caller. It has a goroutine while there are
// any.
type events struct {
	observe func(Event) // may be nil

	mu      sync.Mutex
	queue   []Event
	missed  int
	running bool
}

func (e *events) send(event Event) {
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
func (e *events) merge(event Event) bool {
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
