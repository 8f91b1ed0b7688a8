package ratelimit

import "dappco.re/go/core/go-ratelimit/event"

// Observer is told of everything that happens to calls, and to the store that
// counts them. Package telemetry has some.
type Observer = event.Observer

// Observers is several observers as one.
type Observers = event.Observers

// Event is something that happened.
type Event = event.Event

// EventKind is what happened.
type EventKind = event.Kind

// The kinds of events. Package event says what each of them means.
const (
	EventAdmitted  = event.Admitted
	EventDenied    = event.Denied
	EventRefused   = event.Refused
	EventLeft      = event.Left
	EventLost      = event.Lost
	EventSettled   = event.Settled
	EventCancelled = event.Cancelled
	EventPaused    = event.Paused
	EventResumed   = event.Resumed
	EventLowered   = event.Lowered
	EventLearned   = event.Learned
	EventStore     = event.Store
)
