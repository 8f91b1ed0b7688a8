package fair

import (
	"cmp"
	"container/list"
	"time"
)

// Ticket describes a call that joins a line.
type Ticket struct {
	Flow       string
	Groups     []string // that the flow is in, such as the projects above a user: see [Answer].Group
	Rank       int      // the rank of the flow: flows of a higher rank are served first
	Weight     int      // the weight of the flow among those of its rank, from 1
	Priority   int      // the priority of the call in its flow: a higher one is served first
	Cost       int64    // the cost of the call's turn, as a part of [WholeTurn]
	MaxWaiting int      // how many calls of the flow may wait; 0 means any number

	Denied bool   // the call has asked before it joins, and the line's limits have denied it
	Answer Answer // the answer to the call, if its flow's own limits have denied it

	Call     any      // what the call asks for, for those that may overtake it; nil: no call may
	Overtake Overtake // lets the call overtake another; nil: it never does
}

// Answer is the answer to a waiter that has the turn and asks.
type Answer struct {
	Done  bool          // the waiter need not wait any more
	Again time.Duration // the time after which to ask again
	Aside bool          // the flow's own limits deny the call, and not the line's
	Yield bool          // the flow's share of the line's limits denies the call: others have their turns meanwhile
	Group string        // of a call that yields: the group whose share denies it, so that all flows in it yield; empty: the flow's own does
	Held  bool          // of a call that yields: what it waits for comes back when a call ends, so that it asks again then
	By    string        // the limit that denies the call
	Guess bool          // Again is a guess: nobody knows when By lets a call pass

	Delays bool // the call would delay the one that it asks to overtake
}

// waiter is a call in a line.
type waiter struct {
	Ticket
	flow    *flow
	element *list.Element // the waiter's element in the flow
	arrived int64         // the number of its arrival in the hall
	aside   bool          // the waiter has stepped aside
	asked   int64         // Line.wakes when the waiter asked last
	yielded *list.Element // the waiter's element in Line.yielded; nil: it has not yielded for what calls hold, or was woken since
	woken   chan struct{} // holds a value when the waiter should check whether it has the turn

	denials   int64     // Line.denials when the waiter asked to overtake
	retry     time.Time // until when the limits have denied the waiter when it asked to overtake
	refusedAt int64     // Line.wakes at that time
}

// denial is when a denied waiter asks again, and which limit has denied it.
type denial struct {
	due   time.Time
	by    string
	guess bool // due is a guess
}

func newDenial(a Answer) denial { return denial{time.Now().Add(a.Again), a.By, a.Guess} }

func (d denial) ahead() Ahead { return Ahead{Again: time.Until(d.due), By: d.by, Guess: d.guess} }

// Ahead describes the waiting calls that come before a new one.
type Ahead struct {
	Again time.Duration // the time after which the first of them asks again
	By    string        // the limit that has denied it
	Guess bool          // Again is a guess: nobody knows when By lets a call pass
	Own   bool          // By is a limit of the flow's own
}

// wake lets w check again whether it has the turn, and ask if it has.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// compare orders two waiters of a flow: by priority, and then by arrival.
func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(other.Priority, w.Priority), cmp.Compare(w.arrived, other.arrived))
}

func (w *waiter) before(other *waiter) bool { return w.compare(other) < 0 }
