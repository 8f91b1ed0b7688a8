package gateway

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
)

// EventKind is what has happened, in one word.
type EventKind string

// The kinds of events that operators can follow.
const (
	EventDecision  EventKind = "decision"  // a request has ended: Record
	EventThreshold EventKind = "threshold" // a budget has reached a threshold: Limiter
	EventPause     EventKind = "pause"     // a provider takes no calls of a model: Limiter, Provider
	EventResume    EventKind = "resume"    // a provider takes calls of a model again: Limiter, Provider
	EventChange    EventKind = "change"    // an operator has changed something: Change
	EventReload    EventKind = "reload"    // the configuration was read anew, or could not be: Err
	EventStore     EventKind = "store"     // the store is lost, if Err is set, or back
)

// Event is something that an operator may want to know at once. All followers share it, so it must not be changed.
type Event struct {
	Kind     EventKind
	Time     time.Time
	Record   *Record
	Limiter  *event.Event
	Provider string // of the model in Limiter
	Change   any    // what the admin API says of it
	Err      error

	borrowed bool // Record is the caller's until all followers were asked
	once     sync.Once
	text     []byte
}

// Text returns the event as JSON, which is marshalled once for all followers. value returns what is marshalled.
func (e *Event) Text(value func(*Event) any) []byte {
	e.once.Do(func() {
		text, err := json.Marshal(value(e))
		if err != nil {
			panic(err) // the values are types of package admin, which marshal
		}
		e.text = text
	})
	return e.text
}

// followers are all followers of the events of a gateway.
type followers struct {
	count atomic.Int64 // so that nothing is done for nobody
	mu    sync.RWMutex
	all   map[*Follower]bool
}

// Follower gets events. Close it when it is not needed any more.
type Follower struct {
	of   *followers
	want func(*Event) bool
	come chan struct{} // has room for one

	mu     sync.Mutex
	events []Unread
}

// Unread is an event that waits for a follower.
type Unread struct {
	*Event
	Missed uint64 // how many events the follower has missed after this one
}

// maxUnread is how many events wait for a follower. It misses decisions that come then; other events are rare, and have
// as much room again.
const maxUnread = 1024

// Follow returns a follower of the events that it wants.
func (g *Gateway) Follow(want func(*Event) bool) *Follower {
	f := &Follower{of: &g.followers, want: want, come: make(chan struct{}, 1)}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.all == nil {
		f.of.all = map[*Follower]bool{}
	}
	f.of.all[f] = true
	f.of.count.Add(1)
	return f
}

// Close ends the events.
func (f *Follower) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.all[f] {
		delete(f.of.all, f)
		f.of.count.Add(-1)
	}
}

// Come returns a channel that gets a value when there are events to Read.
func (f *Follower) Come() <-chan struct{} { return f.come }

// Read returns the next events, as many as most.
func (f *Follower) Read(most int) []Unread {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(most, len(f.events))
	next := f.events[:n:n]
	f.events = slices.Clone(f.events[n:])
	if len(f.events) > 0 {
		f.notify()
	}
	return next
}

// notify sends a value to the channel of Come, unless it has one already.
func (f *Follower) notify() {
	select {
	case f.come <- struct{}{}:
	default:
	}
}

// add gives the follower an event, if it wants it and has room.
func (f *Follower) add(e *Event) {
	if !f.want(e) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) >= maxUnread && (e.Kind == EventDecision || len(f.events) >= 2*maxUnread) {
		f.events[len(f.events)-1].Missed++
		return
	}
	e.keep()
	f.events = append(f.events, Unread{Event: e})
	f.notify()
}

// Publish sends an event to all followers. It waits for none of them.
func (g *Gateway) Publish(e *Event) { g.followers.publish(e) }

func (all *followers) publish(e *Event) {
	if all.count.Load() == 0 {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	all.mu.RLock()
	defer all.mu.RUnlock()
	for f := range all.all {
		f.add(e)
	}
}

// publishRecord sends a request that has ended to all followers.
func (all *followers) publishRecord(rec *Record) {
	if all.count.Load() == 0 {
		return
	}
	all.publish(&Event{Kind: EventDecision, Record: rec, borrowed: true})
}

// keep copies the record of an event that a follower keeps, if it is the caller's. Most events of a busy gateway are
// missed, and not copied.
func (e *Event) keep() {
	if e.borrowed {
		kept := *e.Record
		e.Record, e.borrowed = &kept, false
	}
}

// Followers returns how many follow.
func (g *Gateway) Followers() int { return int(g.followers.count.Load()) }
