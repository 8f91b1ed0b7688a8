package project

import (
	"fmt"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Never is the RetryAfter of a call that can never pass, because it is larger than a limit.
const Never = limit.Never

// Decision is the answer to one call.
type Decision struct {
	Allowed bool

	// Exceeded is the name of the limit that denies, or of the one that denies longest:
	// that of a [Window], or [Concurrent]. If it is the project's share of a window that
	// denies, it ends with "_share". It is empty if none does.
	Exceeded string

	// Owner says whose limit Exceeded is: the id of the call's project or of one above it,
	// or "key" or "run" with the id of that. It is empty if none denies.
	Owner string

	// RetryAfter is how long it takes until the same call passes, if nothing else passes
	// before it: zero when it was allowed, [Never] when it cannot pass. While other calls
	// wait, it is the time until the first of them passes. Nobody knows when a call under
	// way ends, so for [Concurrent], and for a window that is [Standing].Held, it is a guess.
	RetryAfter time.Duration

	// Local says that the store has decided without the server that it shares with others, so that what is used is
	// not known: see [limit.Decision].
	Local bool

	// Concurrent is how many calls of the project are under way, including this one, up
	// to [Limit].MaxConcurrent. If that is 0, they are not counted.
	Concurrent int64

	// Share is the share of the call's project in the window of Owner, if that denies the call.
	Share DeniedShare

	// Shadow is the limit that would have denied a call which has passed, if [Call].ShadowOf is set.
	Shadow ShadowDenial

	asked bool
	plan  *plan // that denies, or the last that was asked
	count int
	few   [fewStandings]Standing
	many  *[]Standing // all, if there are more than few; a pointer, so that decisions can be compared
}

// DeniedShare is a project's share of a limit that a project above it has, or the project itself has with
// those below it. It is zero if no share denies the call.
type DeniedShare struct {
	Project   string  // whose share it is
	Window    *Window // that is divided: do not change it
	Max, Used int64
	Projects  int // how many projects share the window now
}

// ShadowDenial is a limit in shadow that would have denied a call. It is zero if none would have.
type ShadowDenial struct {
	Owner     string // as in [Decision], or the name of the model
	Model     bool   // Owner is a model
	Limit     string // the name of the limit
	Used, Max int64  // what is used with this call, and the limit; both are 0 for a pause of the model
}

// ShadowDenialOf returns which limit in shadow would have denied a call. It is for package ratelimit alone.
func ShadowDenialOf(o *engine.Outcome) ShadowDenial {
	over := o.Overlooked
	if over == nil {
		return ShadowDenial{}
	}
	return ShadowDenial{over.Scope.Name, over.Scope.OfModel(), over.Limit, over.Used, over.Max}
}

// String returns a sentence: project "acme" would have been denied by "requests_per_minute": 11 of 10 used.
func (s *ShadowDenial) String() string {
	owner := engine.OwnerText(s.Owner)
	if s.Model {
		owner = fmt.Sprintf("model %q", s.Owner)
	}
	return fmt.Sprintf("the limit %q of %s would have denied the call: %d of %d are used", s.Limit, owner, s.Used, s.Max)
}

// fewStandings is how many windows nearly all calls are charged to at most.
const fewStandings = 8

// Standing is where the owner of a window stands in it: the call's project, one above it, its
// key or its run.
type Standing struct {
	Owner      string        // as in [Decision]
	Window     *Window       // the same one, as long as the limit stays: do not change it
	Remaining  int64         // after the call
	Used       int64         // after the call: more than the limit, if calls have used more than they had reserved
	Reserved   int64         // the part of Used that calls under way in this process hold, if the window reserves the most of a call
	RetryAfter time.Duration // until this window lets the call pass: zero if it does now

	// Held says that the window denies the call only because of what calls under way have reserved, which
	// comes back when they end. RetryAfter is a guess then.
	Held bool

	ResetAfter time.Duration // until nothing is used in the window, if nothing else passes
}

// Windows returns where the call's project, all above it, its key and its run stand in each of
// the windows that the call was charged to. Those of the project come first, and of each owner
// those of requests, then those of tokens and of dollars, the shortest first.
func (d *Decision) Windows() []Standing {
	if d.many != nil {
		return *d.many
	}
	return d.few[:d.count]
}

// IsZero reports whether the decision is empty: no limit of a project was asked.
func (d *Decision) IsZero() bool { return !d.asked }

// Hear fills in d, which is zero, with what the limits of a project, and of others that this
// package knows, have answered to a call that is charged to a model as well. It is for package
// ratelimit alone.
func Hear(d *Decision, o *engine.Outcome) {
	d.Allowed = true
	d.hear(o)
}

// hear enters what the limits of the call's own scopes say.
func (d *Decision) hear(o *engine.Outcome) {
	all := o.All()
	for k := range all {
		s := &all[k]
		if p := planIn(s.Rules()); p != nil {
			d.hearOne(s, p)
		}
	}
}

// hearOne enters what the limits of one scope say.
func (d *Decision) hearOne(s *engine.Standing, p *plan) {
	d.asked = true
	if d.plan == nil {
		d.plan = p
	}
	var slots *limit.Decision
	for i := range s.Len() {
		place, said := s.Said(i)
		d.Local = d.Local || said.Local
		if place < len(p.windows) {
			to := d.enter(p, s.Scope.Name, place, said, s.RetryAfter(i))
			to.Held = s.IsHeld(i)
			to.Reserved = min(s.Scope.Held(p.limits[place].Unit), to.Used)
		} else {
			slots = said
		}
	}
	if share := s.Share(); share != nil && share.RetryAfter > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded, d.Owner, d.plan = false, share.RetryAfter, share.Name, s.Scope.Name, p
		d.Share = DeniedShare{share.Of, &p.windows[share.Limit.ID], share.Share, share.Used, share.Members}
	}
	if slots != nil { // calls at a time come last, whatever their place
		d.enterSlots(p, s.Scope.Name, slots)
	}
}

// enter enters what the window at a place in a plan says, and when it lets the call pass.
func (d *Decision) enter(p *plan, owner string, window int, said *limit.Decision, retry time.Duration) *Standing {
	w, s := &p.windows[window], d.next()
	s.Owner, s.Window, s.Remaining, s.Used, s.RetryAfter, s.ResetAfter = owner, w, said.Remaining, said.Used, retry, said.ResetAfter
	if s.Remaining > w.Count { // the window only counts the call, which is a batch
		s.Remaining = max(w.Count-said.Used, 0)
	}
	if retry > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded, d.Owner, d.plan = false, retry, w.Name, owner, p
	}
	return s
}

// next returns the room for one more standing.
func (d *Decision) next() *Standing {
	if d.many == nil && d.count < len(d.few) {
		d.count++
		return &d.few[d.count-1]
	}
	if d.many == nil {
		all := slices.Clone(d.few[:])
		d.many = &all
	}
	*d.many = append(*d.many, Standing{})
	return &(*d.many)[len(*d.many)-1]
}

// enterSlots enters what the limit on calls at a time says.
func (d *Decision) enterSlots(p *plan, owner string, said *limit.Decision) {
	if d.Concurrent == 0 {
		d.Concurrent = min(said.Used, int64(p.limit.MaxConcurrent))
	}
	if guess := min(said.RetryAfter, engine.SlotGuess); guess > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded, d.Owner, d.plan = false, guess, Concurrent, owner, p
	}
}
