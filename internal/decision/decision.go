// Package decision has the answer that the limits of projects, keys and runs give to a call: the [Decision] of package
// project, which is also the part of package ratelimit's decisions that says nothing of models. The engine fills it in.
package decision

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// ErrExceeded is the error of a request that a limit denies, where a denial is an error.
var ErrExceeded = errors.New("ratelimit: rate limit exceeded")

// Concurrent is the name of the limit on the calls of a project at a time.
const Concurrent = "projects.max_concurrent"

// Decision is the answer to one call.
type Decision struct {
	Allowed bool

	// Limit is the name of the limit that denies, or of the one that denies longest: a name of a [Window], or [Concurrent].
	// If it is the project's share of a window that denies, it ends with "_share". It is empty if none does.
	Limit string

	// Owner says whose limit it is: the id of the call's project or of one above it, or "key" or "run" with the id of
	// that. It is empty if none denies, and if a limit of the call's model does.
	Owner string

	// RetryAfter is how long it takes until the same call passes, if nothing else passes
	// before it: zero when it was allowed, [limit.Never] when it cannot pass. While other calls
	// wait, it is the time until the first of them passes. Nobody knows when a call under
	// way ends, so for [Concurrent], and for a window that is [Standing].Held, it is a guess.
	RetryAfter time.Duration

	// Local says that the store has decided without the server that it shares with others, so that what is used is
	// not known: see [limit.Decision].
	Local bool

	// Concurrent is how many calls of the project are under way, including this one, up
	// to its MaxConcurrent. If that is 0, they are not counted.
	Concurrent int64

	// Share is the share that denies the call: of the call's project in the window of Owner, or in a limit of the model.
	// It is zero while other calls of the project wait for the share.
	Share DeniedShare

	// Shadow is the limit that would have denied a call which has passed: see ShadowOf and ShadowModel of a Call.
	Shadow ShadowDenial

	asked bool  // a limit of a project, a key or a run was asked
	slots int64 // how many calls at a time the limit allows that denies, if that is Concurrent
	count int
	few   [fewStandings]Standing
	many  *[]Standing // all, if there are more than few; a pointer, so that decisions can be compared
}

// DeniedShare is the share of a project that denies a call: of a limit of a model, of one that a project above it has, or
// of one that the project itself has with those below it. It is zero if no share denies the call.
type DeniedShare struct {
	Project   string  // whose share it is
	Window    *Window // that is divided: do not change it; nil: a limit of the model is
	Max, Used int64   // of what the limit counts: of the minute that ends now, or of the day
	Projects  int     // how many projects share the limit now
}

// ShadowDenial is a limit in shadow that would have denied a call. It is zero if none would have.
type ShadowDenial struct {
	Owner     string // as in [Decision], or the name of the model
	Model     bool   // Owner is a model
	Limit     string // the name of the limit
	Used, Max int64  // what is used with this call, and the limit; both are 0 for a pause of the model
}

// String returns a sentence: project "acme" would have been denied by "requests_per_minute": 11 of 10 used.
func (s *ShadowDenial) String() string {
	owner := OwnerText(s.Owner)
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
	Reserved   int64         // the part of Used that calls under way hold, in this process or, if Held, in all, if the window reserves the most of a call
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

// IsZero reports whether no limit of a project, a key or a run was asked.
func (d *Decision) IsZero() bool { return !d.asked }

// MarkAsked notes that the limits of an owner were asked, of which there may be none.
func MarkAsked(d *Decision) { d.asked = true }

// Enter adds the answer of an owner's window to d, and when the window lets the call pass.
func Enter(d *Decision, owner string, w *Window, said *limit.Decision, retry time.Duration) *Standing {
	s := d.next()
	s.Owner, s.Window, s.Remaining, s.Used, s.RetryAfter, s.ResetAfter = owner, w, said.Remaining, said.Used, retry, said.ResetAfter
	if s.Remaining > w.Count { // the window only counts the call, which is a batch
		s.Remaining = max(w.Count-said.Used, 0)
	}
	Deny(d, owner, w.Name, retry)
	return s
}

// EnterSlots adds the answer of an owner's limit of most calls at a time to d. guess is when to ask again for a slot.
func EnterSlots(d *Decision, owner string, most int64, said *limit.Decision, guess time.Duration) {
	if d.Concurrent == 0 {
		d.Concurrent = min(said.Used, most)
	}
	if Deny(d, owner, Concurrent, min(said.RetryAfter, guess)) {
		d.slots = most
	}
}

// Deny makes a limit the one that denies the call, if it denies it for longer than the limits so far. It reports whether
// that is so. A limit that admits the call has a retry of 0.
func Deny(d *Decision, owner, name string, retry time.Duration) bool {
	if retry <= d.RetryAfter {
		return false
	}
	d.Allowed, d.RetryAfter, d.Limit, d.Owner = false, retry, name, owner
	return true
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
