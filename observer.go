package ratelimit

import (
	"context"
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Observer is told of everything that happens to calls, and to the store that
// counts them. It is called by whoever it happens to, many at a time, so it must
// not take long. Package telemetry has some.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Observers is several observers as one.
type Observers []Observer

// Observe tells each of them.
func (all Observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}

// EventKind is what happened.
type EventKind string

// The kinds of events. Looking at what is left is none.
const (
	EventAdmitted  EventKind = "admitted"  // a call may be made
	EventDenied    EventKind = "denied"    // a limit has said no: at once, or after the call has waited in vain
	EventRefused   EventKind = "refused"   // the call is not valid: no limit was asked
	EventLeft      EventKind = "left"      // the caller has left, or its time was over before a limit was asked
	EventLost      EventKind = "lost"      // the store that counts could not be asked
	EventSettled   EventKind = "settled"   // it is known what a call has used
	EventCancelled EventKind = "cancelled" // a call was not made, and has given back what it took
	EventPaused    EventKind = "paused"    // the provider has throttled a call: RetryAfter is how long its model is paused, Cause is why
	EventResumed   EventKind = "resumed"   // a pause has ended: Waited is how long it was, Cause is why the model was paused
	EventLowered   EventKind = "lowered"   // the provider has less left of Limit than the quota: Said is how much
	EventLearned   EventKind = "learned"   // the maximum of Limit is what the provider has said: Said
	EventStore     EventKind = "store"     // the store was lost, or is back: see Store
)

// Event is something that happened.
type Event struct {
	Kind EventKind

	Project string // whose call it is; empty where projects have no part in it
	Model   string // which it is for; empty where it is for none
	Limited bool   // the model has a quota, so its name is one that was configured

	// Limit is the one that has denied a call: of a project's and a model's that
	// both deny, whichever denies longer. It is a project's "minute", "hour",
	// "day", "tokens-minute", "tokens-hour", "tokens-day", "tokens-month" or
	// "concurrent-project", or a model's "rpm", "tpm", "rpd", "input_tpm",
	// "output_tpm", "tpd", "concurrent" or "paused".
	Limit string

	// RemainingMinute is how many requests the project has left in this
	// minute, or -1 where that is not limited or not known.
	RemainingMinute int64

	// Waited is how long the call has waited in line. Of EventResumed it is how
	// long the model was paused.
	Waited time.Duration

	// RetryAfter is when a call that was denied would pass, or [Never]. Of
	// EventPaused it is how long the pause is at most, of EventLowered when all is there
	// again if nobody else uses any.
	RetryAfter time.Duration

	// Began is set of EventPaused if the model was not paused before. Calls that were
	// under way may be refused after it.
	Began bool

	// Shadow is set if the call goes on even where it is denied.
	Shadow bool

	// Estimated is how many tokens were reserved for a call that count for its
	// model, prompt and output together. Used is how many it has used, once it is
	// settled: -1 where that is not known, and what was reserved stands.
	Estimated int64
	Used      Tokens

	// Said is how many the provider has said that are left of Limit, or that it
	// grants. Cause is why it has throttled a call.
	Said  int64
	Cause llm.Cause

	// Err is why the store could not be asked, why the call is not valid, or why a
	// call that was to wait waits no longer.
	Err error

	// Store is what a store in Redis tells, of kind EventStore.
	Store *redisstore.Event
}

// OnStoreEvent returns what a [redisstore.Config] wants as OnEvent, for a store
// that you make and give to [NewWithStore]. A limiter that makes its store needs
// no telling.
func OnStoreEvent(o Observer) func(redisstore.Event) {
	if o == nil {
		return nil
	}
	return func(e redisstore.Event) {
		o.Observe(context.Background(), Event{Kind: EventStore, RemainingMinute: -1, Err: e.Err, Store: &e})
	}
}

// event returns the event of a decision.
func (rl *RateLimiter) event(c *call, d *Decision, err error) Event {
	m := (*rl.quotas.Load())[c.model]
	e := Event{
		Kind: EventAdmitted, Project: c.project, Model: c.model, Limited: m != nil, Limit: d.Limit,
		RemainingMinute: -1, RetryAfter: d.RetryAfter, Shadow: c.shadow, Err: err,
	}
	if c.invalid == nil {
		e.Estimated = c.request.input + c.request.output
	}
	if d.Project != nil {
		e.RemainingMinute = d.Project.remainingMinute()
	}
	switch {
	case c.invalid != nil:
		e.Kind, e.RetryAfter, e.Err = EventRefused, 0, c.invalid
		if checkProject(c.project) != nil {
			e.Project = ""
		}
	case err == nil && d.Allowed:
	case err == nil, errors.Is(err, ErrNever), errors.Is(err, ErrCrowded), errors.Is(err, context.DeadlineExceeded) && d.Limit != "":
		e.Kind = EventDenied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Kind = EventLeft
	default:
		e.Kind = EventLost
	}
	return e
}

// remainingMinute returns how many requests are left of the minute, or -1.
func (s *ProjectStanding) remainingMinute() int64 {
	for i := range s.Limits.Requests {
		if s.Limits.Requests[i].Period() == time.Minute {
			return s.Decisions[i].Remaining
		}
	}
	return -1
}

// observeEnd tells of the end of a reservation.
func (rl *RateLimiter) observeEnd(r *Reservation, kind EventKind, used Tokens) {
	if rl.observer == nil {
		return
	}
	m := (*rl.quotas.Load())[r.model.name]
	rl.observer.Observe(context.Background(), Event{
		Kind: kind, Project: r.project, Model: r.model.name, Limited: m != nil, RemainingMinute: -1,
		Estimated: r.taken[ofTokens], Used: used,
	})
}
