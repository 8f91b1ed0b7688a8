// Package event has what observers get: an event for everything that happens to calls, to the
// providers' limits, and to the store that counts. Package telemetry has observers.
package event

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// Observer gets an event for everything that happens to calls, and to the store that counts
// them. Observe is called on the goroutine of the call, by many calls at a time, so it must not
// take long.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Bounded is an Observer that may have no room for an event of the kind Threshold. Such an event is not observed then:
// it is reported when a later call finds the budget at its threshold and there is room.
type Bounded interface {
	Observer
	HasRoom(e Event) bool
}

// Observers is several observers as one.
type Observers []Observer

var _ Bounded = Observers(nil)

// HasRoom reports whether each of them that is Bounded has room.
func (all Observers) HasRoom(e Event) bool {
	for _, o := range all {
		if b, ok := o.(Bounded); ok && !b.HasRoom(e) {
			return false
		}
	}
	return true
}

// Observe passes the event on to each of them.
func (all Observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}

// Kind is what happened.
type Kind string

// The kinds of events. A call that only asks what is left makes no event.
const (
	Admitted  Kind = "admitted"  // a call may be made
	Denied    Kind = "denied"    // a limit denied the call: at once, or after it had waited in vain
	Refused   Kind = "refused"   // the call is not valid: no limit was asked
	Left      Kind = "left"      // the caller has left, or its time was over before a limit was asked
	Lost      Kind = "lost"      // the store that counts could not be asked
	Settled   Kind = "settled"   // it is known what a call has used
	Cancelled Kind = "cancelled" // a call was not made, and what it took is given back
	Paused    Kind = "paused"    // the provider has throttled a call: RetryAfter is how long its model is paused, Cause is why
	Resumed   Kind = "resumed"   // a pause has ended: Waited is how long it was, Cause is why the model was paused
	Lowered   Kind = "lowered"   // the provider has less left of Limit than the quota: Said is how much
	Learned   Kind = "learned"   // the maximum of Limit is now what the provider grants: Said
	Store     Kind = "store"     // the store was lost, or is back: see Event.Store
	Threshold Kind = "threshold" // a budget has reached a threshold: see Event.Budget
)

// Event is something that happened.
type Event struct {
	Kind Kind

	Project string // the call's project; empty for a call without one
	Model   string // the call's model; empty for a call without one
	Limited bool   // the model has a quota, so its name is one that was configured

	// Limit is the limit that denied the call. If a limit of the project and one of the
	// model deny it, Limit is the one that denies longer. It is named after the field of the
	// configuration that sets it: "tokens_per_day" of a project, "max_rpm" of a model, "runs.dollars"
	// of a run. A project's "max_concurrent" is "projects.max_concurrent". A project's share of a limit
	// ends with "_share", as "max_rpm_share", and the pace of a model's limit with "_pace". "paused" is
	// a model that its provider has paused.
	Limit string

	// RemainingMinute is how many requests the project has left in this
	// minute, or -1 where that is not limited or not known.
	RemainingMinute int64

	// Waited is how long the call has waited in line. For Resumed it is how long the model
	// was paused.
	Waited time.Duration

	// RetryAfter is when a call that was denied would pass, or limit.Never. For Paused it
	// is how long the pause is at most. For Lowered it is when all of Limit is left again, if
	// nobody else uses any.
	RetryAfter time.Duration

	// Began says of a Paused event that the model was not paused before. Calls that are
	// under way may be throttled after it.
	Began bool

	// Shadow is set if the call goes on even where it is denied.
	Shadow bool

	// Estimated is how many tokens were reserved for the call, prompt and output together,
	// as far as they count for its model. Used is how many it has used, once it is settled:
	// -1 where that is not known, and what was reserved stays charged.
	Estimated int64
	Used      llm.Tokens

	// Dollars is what the call is expected to cost, and what it has cost once it is settled: what was expected,
	// if that was not reported. It is 0 where the model has no price.
	Dollars price.Amount

	// Count is the weights by which Estimated counts, and Used has to be counted.
	Count llm.TokenWeights

	// Said is how much the provider says is left of Limit, or that it grants. Cause is why
	// it has throttled a call.
	Said  int64
	Cause llm.Cause

	// Err is why the store could not be asked, why the call is not valid, or why a call
	// waits no longer.
	Err error

	// Store is the event of a store on a server, for the kind Store.
	Store *store.Event

	// Budget is the budget that has reached a threshold, for the kind Threshold. If Err is set,
	// no event could be sent of it: see [Budget].
	Budget *Budget
}

// Budget is where a budget stands that has reached a threshold: a limit of a project, a key or a
// run, of an hour or longer or in total. Each threshold of a budget is reported once a window, whatever
// the number of processes that share the store. [Event].Project is the project whose call has
// reached it.
//
// An event whose Err is set says why a threshold was not reported: too many were reached at a time, or
// the store could not be asked whether another process has reported it. A later call may reach the
// threshold again, and is reported then.
type Budget struct {
	Owner   string // whose budget it is: the id of a project, or "key" or "run" with the id of that
	Limit   string // as in Event.Limit
	Unit    string // "requests", "tokens" or "dollars"
	Percent int    // the threshold

	// Used is how much is used, what calls under way have reserved included, and Max is the
	// budget: of dollars, in billionths. A budget that denies a call because too little of it is
	// left has reached 100%, even if Used is less than Max.
	Used, Max int64

	At     time.Time // when the threshold was reached
	Resets time.Time // when nothing is used any more, if nothing else passes; zero for a total
}

// ModelUsage is what is used of a model's quota at one time.
type ModelUsage struct {
	Model  string
	Paused time.Duration // how much longer the provider takes no calls
	Lost   bool          // the store could not be asked, so it is unknown what is used
	Limits []LimitUsage
}

// ProjectUsage is what is used of a project's budgets at one time.
type ProjectUsage struct {
	Project string
	Lost    bool // the store could not be asked, so it is unknown what is used
	Limits  []LimitUsage
}

// LimitUsage is what is used of one limit of a model's quota, or of a budget: of dollars, in billionths.
type LimitUsage struct {
	Name      string // as in Event.Limit
	Used, Max int

	// Reserved is the part of Used that calls under way in this process hold, if the limit reserves the most of a
	// call. It is 0 for limits of models.
	Reserved int
}

// ProjectShare is where a project stands among those that share the limits of a model, or of a project
// above them: those that have called within the period of one of these limits, and those to which a share
// is dedicated.
type ProjectShare struct {
	Project string       `json:"project"` // empty for calls without one
	Waiting int          `json:"waiting"` // its calls that wait
	Limits  []LimitShare `json:"limits"`
}

// LimitShare is what a project has of one limit that it shares, in the last minute, hour or day. Its part
// is what it has by weight among those that share the limit: at least its MinShare, and at most its
// MaxShare.
type LimitShare struct {
	Name     string `json:"limit"` // as in Event.Limit
	Share    int    `json:"share"` // what the project may use
	Used     int    `json:"used"`
	Part     int    `json:"part"`
	Lent     int    `json:"lent"`     // what others may use of its part, because the project is not expected to want it
	Borrowed int    `json:"borrowed"` // what it has used beyond its part
}

// OfStore returns the OnEvent function of a store on a server, which passes the store's events
// on to an observer. It is nil without an observer.
func OfStore(o Observer) func(store.Event) {
	if o == nil {
		return nil
	}
	return func(e store.Event) {
		o.Observe(context.Background(), Event{Kind: Store, RemainingMinute: -1, Err: e.Err, Store: &e})
	}
}
