package ratelimit

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Never is the RetryAfter of a call that can never pass, because it is larger than a quota.
const Never = limit.Never

// DecisionCode says in one word why a request passes or not.
type DecisionCode string

const (
	DecisionAllowed       DecisionCode = "ok"
	DecisionUnknownModel  DecisionCode = "unknown_model"  // no quota is set: allowed
	DecisionUnlimited     DecisionCode = "unlimited"      // a quota without any limit: allowed
	DecisionInvalidTokens DecisionCode = "invalid_tokens" // tokens, project or another field is not valid: denied

	DecisionRPDLimit         DecisionCode = "rpd_exceeded"
	DecisionRPMLimit         DecisionCode = "rpm_exceeded"
	DecisionTPMLimit         DecisionCode = "tpm_exceeded"
	DecisionInputTPMLimit    DecisionCode = "input_tpm_exceeded"
	DecisionOutputTPMLimit   DecisionCode = "output_tpm_exceeded"
	DecisionTPDLimit         DecisionCode = "tpd_exceeded"
	DecisionConcurrencyLimit DecisionCode = "concurrency_exceeded"

	DecisionTokensInFlightLimit DecisionCode = "tokens_in_flight_exceeded"

	// DecisionPaused means that the provider has throttled a call and takes no more
	// for a while: see [RateLimiter.Heed].
	DecisionPaused DecisionCode = "paused"

	// DecisionProjectLimit means that a limit of the call's project denies: see
	// Decision.Project.
	DecisionProjectLimit DecisionCode = "project_exceeded"

	// DecisionShareLimit means that the project has used its share of a limit of the model,
	// and other projects may want the rest: see Decision.Share.
	DecisionShareLimit DecisionCode = "share_exceeded"

	// DecisionStoreLost means that the store that counts could not be asked, so the
	// call is denied.
	DecisionStoreLost DecisionCode = "store_lost"
)

// Decision is the answer to one request.
type Decision struct {
	// Decision is the answer itself: whether the call is Allowed, the Limit that denies it and its Owner, which is empty
	// for the model, RetryAfter, and what is left in the Windows of the call's project.
	project.Decision

	// Code is the code of Limit. If several limits of the model deny, it is the code of the first that denies: requests a
	// day, then requests a minute, then tokens a minute, then any other.
	Code DecisionCode

	// Elsewhere is how much of Limit is used by others who share the account, as the
	// provider reports it. Stats does not include it.
	Elsewhere int

	// Stats is what is used of the model after this decision.
	Stats ModelStats

	reason string // of the model's limits; empty: the project's say why
}

// Reason says for people why the call passes or not.
func (d Decision) Reason() string {
	reason := d.reason
	if d.Code == DecisionProjectLimit && d.Owner != "" {
		reason += d.Decision.Reason()
		if d.RetryAfter == Never {
			reason += ": it can never pass"
		}
	}
	return reason
}

// String returns the answer and its reason as a sentence.
func (d Decision) String() string {
	if d.Allowed {
		return "allowed: " + d.Reason()
	}
	return strings.TrimSuffix("denied: "+d.Reason(), ": ")
}

// ModelStats is what is used of a model's quota, and the maxima. A maximum of zero is
// unlimited. InputTPM, OutputTPM, TPD, Concurrent, TokensInFlight and EnqueuedTokens are counted
// only for models that limit them.
type ModelStats struct {
	RPM, MaxRPM int
	TPM, MaxTPM int
	RPD, MaxRPD int
	DayStart    time.Time // zero when nothing was used today

	InputTPM, MaxInputTPM     int
	OutputTPM, MaxOutputTPM   int
	TPD, MaxTPD               int
	Concurrent, MaxConcurrent int

	TokensInFlight, MaxTokensInFlight int
	EnqueuedTokens, MaxEnqueuedTokens int

	// Local says that the store has answered without the server that it shares with others, so that what is used is
	// not known: see [limit.Decision].
	Local bool
}

// statsFields are where a ModelStats has what is used of a limit, and its maximum.
type statsFields struct{ used, most *int }

func (s *ModelStats) fields() [kind.Models]statsFields {
	return [kind.Models]statsFields{
		kind.MaxRPM:        {&s.RPM, &s.MaxRPM},
		kind.MaxTPM:        {&s.TPM, &s.MaxTPM},
		kind.MaxRPD:        {&s.RPD, &s.MaxRPD},
		kind.MaxInputTPM:   {&s.InputTPM, &s.MaxInputTPM},
		kind.MaxOutputTPM:  {&s.OutputTPM, &s.MaxOutputTPM},
		kind.MaxTPD:        {&s.TPD, &s.MaxTPD},
		kind.MaxConcurrent: {&s.Concurrent, &s.MaxConcurrent},

		kind.MaxTokensInFlight: {&s.TokensInFlight, &s.MaxTokensInFlight},
		kind.MaxEnqueuedTokens: {&s.EnqueuedTokens, &s.MaxEnqueuedTokens},
	}
}

// Limits returns what is used of each kind of limit, and the maxima.
func (s *ModelStats) Limits() iter.Seq[event.LimitUsage] {
	return func(yield func(event.LimitUsage) bool) {
		for k, f := range s.fields() {
			if !yield(event.LimitUsage{Name: kind.Kind(k).Name(), Used: *f.used, Max: *f.most}) {
				return
			}
		}
	}
}

// Of returns what is used of the limit with a name, such as [Decision].Limit, and its maximum. Both are 0 for any
// name that is not of a limit of a model.
func (s *ModelStats) Of(limit string) event.LimitUsage {
	for l := range s.Limits() {
		if l.Name == limit {
			return l
		}
	}
	return event.LimitUsage{Name: limit}
}

// fillDecision fills in d, which is empty, from the engine's result, or from why the call cannot be decided on. The
// result and the decision are large, so they are passed by their addresses.
func (rl *RateLimiter) fillDecision(c *Call, invalid error, r *engine.Result, d *Decision) {
	if invalid != nil {
		*d = undecidable(invalid)
		d.Stats = rl.Stats(c.Model)
		return
	}
	var v view
	if m, s := modelOf(r); m != nil {
		v.fill(m, s)
	}
	v.fillStats(&d.Stats)
	r.Decide(&d.Decision)
	switch {
	case d.Allowed:
		d.Code, d.reason = DecisionAllowed, "within the quota"
		if d.Shadow.Limit != "" {
			d.reason = d.Shadow.String()
		}
	case r.Outcome.Denied:
		fillDenial(c, r, &v, d)
	case r.Behind:
		facts := factsOf(d.Limit)
		d.Code = facts.code
		d.reason = fmt.Sprintf("others wait for %s: try again in %v", facts.what, message.Wait(d.RetryAfter))
	}
}

// fillDenial fills in the code and the reason of a decision on a call that a limit denies.
func fillDenial(c *Call, r *engine.Result, v *view, d *Decision) {
	s := r.Outcome.Deciding()
	if s.Scope.Kind != engine.Shared {
		d.Code = DecisionProjectLimit
	} else {
		facts := factsOf(d.Limit)
		if facts.kind < kind.Models {
			d.Elsewhere = int(v.elsewhere[facts.kind])
		}
		d.Code = codeOfDenial(s, facts.code, d.RetryAfter)
		if d.Code == DecisionShareLimit {
			share := s.Share()
			d.Share = share.Denied()
			d.reason = shareReason(&d.Share, c, share.OfKey(), kind.Kind(share.Limit.ID).Words(), d.RetryAfter)
		} else if strings.HasSuffix(d.Limit, kind.PaceEnd) {
			d.reason = v.paceReason(facts.kind, d.RetryAfter)
		} else {
			d.reason = v.reason(facts.kind, d.RetryAfter)
		}
	}
	if r.Behind && d.RetryAfter > s.Wait(engine.SlotGuess) {
		d.reason = "others wait; " + d.reason
	}
}

// codeOfDenial returns the code of a denial by a model: of several limits that deny, that of the first in the order of the
// quota, whichever denies longest. by is the code of the one that does.
func codeOfDenial(s *engine.Standing, by DecisionCode, retry time.Duration) DecisionCode {
	first := -1
	for i := range s.Len() {
		place, said := s.Said(i)
		if retry != Never && by != DecisionShareLimit && !said.Allowed && (first < 0 || place < first) {
			first = place
		}
	}
	if first < 0 {
		return by
	}
	return factsOf(s.Rules().Limits[first].Name).code
}

// shareReason returns a sentence for people that says how much of what is limited the project may use.
func shareReason(s *project.DeniedShare, c *Call, ofKey bool, what string, retry time.Duration) string {
	owner, verb, siblings := "the project", "has", "projects use"
	switch {
	case c.Project == "":
		owner, verb = "calls without a project", "have"
	case ofKey:
		owner, siblings = "the key", "keys of the project use"
	}
	if retry == Never {
		return fmt.Sprintf("the call asks for more than the %d %s of %s that %s may use at most: it can never pass", s.Max, what, c.Model, owner)
	}
	others := ""
	if s.Projects > 1 {
		others = fmt.Sprintf(" while %d %s it", s.Projects, siblings)
	}
	return fmt.Sprintf("%s %s a share of %d %s of %s%s, and %s used %d: try again in %v", owner, verb, s.Max, what, c.Model, others, verb, s.Used, message.Wait(retry))
}

// view is the answer of a model's limits to a call, by kind.
type view struct {
	*setup

	used      [kind.Models]int64
	elsewhere [kind.Models]int64         // what others use of the account
	retry     [kind.Models]time.Duration // zero where the limit admits the call
	paused    time.Duration              // how much longer the model is paused
	dayStart  int64                      // Unix nanoseconds; zero: nothing was used today
	local     bool                       // the store has decided without its server
}

// fill copies the verdicts of a model's scope into the view.
func (v *view) fill(m *model, s *engine.Standing) {
	v.setup = m.setup.Load()
	for i := range s.Len() {
		l, said := s.At(i)
		if l.ID >= state.AtProvider {
			continue
		}
		d := kind.Kind(l.ID)
		v.local = v.local || said.Local
		v.used[d], v.retry[d], v.elsewhere[d] = said.Used, said.RetryAfter, l.Elsewhere
		if d == kind.MaxRPD {
			v.dayStart = said.Since
		}
	}
	v.paused = s.Closed.For
}

// reason returns a sentence for people that says why the model denies a call: what is used up,
// and until when. If several dimensions deny, it names the one with the longest wait.
func (v *view) reason(by kind.Kind, retry time.Duration) string {
	if retry == Never {
		return excess(by, &v.quota) + ": it can never pass"
	}
	longest := slices.Max(v.retry[:])
	if v.local && v.paused <= longest {
		by = kind.Kind(slices.Index(v.retry[:], longest))
		return fmt.Sprintf("the store does not answer, and the part of %d %s that may pass here meanwhile is used: try again in %v", v.maxima[by], by.Words(), message.Wait(retry))
	}
	if v.paused > longest {
		return fmt.Sprintf("the provider takes no calls for a while: try again in %v", message.Wait(retry))
	}
	by = kind.Kind(slices.Index(v.retry[:], longest))
	used := "used"
	if n := v.elsewhere[by]; n > 0 {
		used = fmt.Sprintf("used, and %d elsewhere", n)
	}
	return fmt.Sprintf("%d of %d %s %s: try again in %v", v.used[by], v.maxima[by], by.Words(), used, message.Wait(retry))
}

// paceReason returns the reason of a call that the pace of a dimension denies.
func (v *view) paceReason(by kind.Kind, retry time.Duration) string {
	return fmt.Sprintf("the model is paced: %d of its %d %s may pass at once: try again in %v",
		v.quota.Burst(by), v.maxima[by], by.Words(), message.Wait(retry))
}

// excess returns the reason of a call that asks for more of a dimension than its maximum.
func excess(by kind.Kind, q *state.Quota) string {
	return fmt.Sprintf("more than the quota of %d %s", *q.Max(by), by.Words())
}

// fillStats fills in s with the usage and the maximum of each kind.
func (v *view) fillStats(s *ModelStats) {
	if v.setup == nil {
		return
	}
	for k, f := range s.fields() {
		*f.used, *f.most = int(v.used[k]), v.maxima[k]
	}
	s.Local = v.local
	if v.dayStart != 0 {
		s.DayStart = state.UTC(v.dayStart)
	}
}
