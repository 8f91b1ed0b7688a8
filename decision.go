package ratelimit

import (
	"fmt"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Never is the RetryAfter of what can never pass: it is larger than its quota.
const Never = limit.Never

// DecisionCode says in one word why a request passes or not.
type DecisionCode string

const (
	DecisionAllowed       DecisionCode = "ok"
	DecisionUnknownModel  DecisionCode = "unknown_model" // no quota is set: allowed
	DecisionUnlimited     DecisionCode = "unlimited"     // a quota without any limit: allowed
	DecisionInvalidTokens DecisionCode = "invalid_tokens"

	DecisionRPDLimit         DecisionCode = "rpd_exceeded"
	DecisionRPMLimit         DecisionCode = "rpm_exceeded"
	DecisionTPMLimit         DecisionCode = "tpm_exceeded"
	DecisionInputTPMLimit    DecisionCode = "input_tpm_exceeded"
	DecisionOutputTPMLimit   DecisionCode = "output_tpm_exceeded"
	DecisionTPDLimit         DecisionCode = "tpd_exceeded"
	DecisionConcurrencyLimit DecisionCode = "concurrency_exceeded"

	// DecisionPaused is the provider's: it has said that it takes no calls for a
	// while: see [RateLimiter.Heed].
	DecisionPaused DecisionCode = "paused"

	// DecisionProjectLimit is a limit of the call's project: see Decision.Project.
	DecisionProjectLimit DecisionCode = "project_exceeded"

	// DecisionStoreLost is the answer where the store that counts could not
	// be asked: denied.
	DecisionStoreLost DecisionCode = "store_lost"
)

// Decision is the answer to one request.
type Decision struct {
	Allowed bool
	Code    DecisionCode
	Reason  string // for people

	// RetryAfter is when the same request passes if nothing else passes
	// before it: zero when it is allowed, [Never] when it cannot. Where others
	// wait, it is when the first of them passes. When a call that is under way
	// ends nobody knows, so for [DecisionConcurrencyLimit] and for a project's
	// [ConcurrentProject] it is a guess.
	RetryAfter time.Duration

	// Limit is the name of the limit that Code stands for, as in [Event]; empty
	// where none denies.
	Limit string

	// Elsewhere is how much of Limit others have used who share the account, by the
	// provider's word: Stats does not have it.
	Elsewhere int

	// Stats is what is used of the model after this decision.
	Stats ModelStats

	// Project is what the limits of the call's project say; nil without any.
	Project *ProjectStanding
}

// ModelStats is what is used of a model, and of how much. Zero for a maximum is
// unlimited. InputTPM, OutputTPM, TPD and Concurrent are counted only for models
// that limit them.
type ModelStats struct {
	RPM, MaxRPM int
	TPM, MaxTPM int
	RPD, MaxRPD int
	DayStart    time.Time // zero when nothing was used today

	InputTPM, MaxInputTPM     int
	OutputTPM, MaxOutputTPM   int
	TPD, MaxTPD               int
	Concurrent, MaxConcurrent int
}

// outcome is what a ledger says to a request: of each dimension what is used,
// and when it lets the request pass.
type outcome struct {
	rules    *rules
	taken    amounts           // zero if it was denied, or only looked at
	at       int64             // when it was taken,
	epoch    int32             // and in which of the model's epochs
	used     [dimensions]int64 // before it was taken
	dayStart int64
	dayLeft  time.Duration // which is what a store says in place of dayStart
	full     bool          // by a store's word: a log, and more may be used than it holds
	vague    bool          // by a store's word: a day is full, or has just begun
	denied   bool
	retry    [dimensions]time.Duration // zero where it may pass
	probe    time.Duration             // when a paused model may be probed, which is before the pause ends

	project *ProjectStanding // nil without limits of a project
	own     time.Duration    // when its windows let it pass, or zero
	ownSlot time.Duration    // when the lease of one of its calls ends, if as many as may be are under way
}

// deny enters that a dimension lets the request pass no earlier than in a while.
func (o *outcome) deny(d dimension, retry time.Duration) {
	o.denied = true
	o.retry[d] = retry
}

// by returns the dimension that decides, where one denies: the first that denies
// for ever, or else the first that denies.
func (o *outcome) by() dimension {
	if d := slices.Index(o.retry[:], Never); d >= 0 {
		return dimension(d)
	}
	return dimension(slices.IndexFunc(o.retry[:], func(retry time.Duration) bool { return retry > 0 }))
}

// wait returns when every limit lets the request pass, as far as is known.
func (o *outcome) wait(guess time.Duration) time.Duration {
	return max(o.ownWait(guess), o.modelWait(guess))
}

// modelWait returns when every dimension lets the request pass, as far as is
// known. The end of a call is not known, at the latest it is the end of its lease:
// guess is what to take for it.
func (o *outcome) modelWait(guess time.Duration) (longest time.Duration) {
	for d, retry := range o.retry {
		if dimension(d) == concurrent && retry != Never {
			retry = min(retry, guess)
		}
		longest = max(longest, retry)
	}
	return longest
}

// decide makes d, which is empty, the decision. Both are large, so they are
// handed on by their addresses.
func (o *outcome) decide(d *Decision) {
	d.Allowed, d.Code, d.Reason = true, DecisionAllowed, "within the quota"
	d.Project = o.project
	o.describe(&d.Stats)
	if !o.denied {
		return
	}
	d.Allowed, d.RetryAfter = false, o.wait(slotGuess)
	d.Limit = o.exceeded()
	if m := o.rules.missing; m != nil && !o.byProject() {
		d.Elsewhere = int(m.n[o.by()])
	}
	d.Code, d.Reason = codeOf(d.Limit), o.reason(d.RetryAfter)
}

// reason says for people what denies longest.
func (o *outcome) reason(retry time.Duration) string {
	switch {
	case o.byProject() && retry == Never:
		return o.project.reason() + ": it can never pass"
	case o.byProject():
		return o.project.reason()
	case retry == Never:
		return o.excess() + ": it can never pass"
	default:
		return o.shortage(retry)
	}
}

// byProject reports whether it is the project's limits that deny longest.
func (o *outcome) byProject() bool { return o.ownWait(slotGuess) > o.modelWait(slotGuess) }

// exceeded returns the name of the limit that decides.
func (o *outcome) exceeded() string {
	if o.byProject() {
		return o.project.exceeded()
	}
	return facts[o.by()].name
}

// shortage says what is used up until when: of several, what is so for longest.
func (o *outcome) shortage(retry time.Duration) string {
	by := dimension(slices.Index(o.retry[:], slices.Max(o.retry[:])))
	if by == paused {
		return fmt.Sprintf("the provider takes no calls for a while: try again in %v", told(retry))
	}
	used := "used"
	if m := o.rules.missing; m != nil && m.n[by] > 0 {
		used = fmt.Sprintf("used, and %d elsewhere", m.n[by])
	}
	return fmt.Sprintf("%d of %d %s %s: try again in %v", o.used[by], o.rules.max[by], facts[by].what, used, told(retry))
}

// told returns a wait as people are told it: in whole milliseconds, and not too short.
func told(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// excess says of what a request asks more than there ever is.
func (o *outcome) excess() string {
	by := o.by()
	return fmt.Sprintf("more than all %d %s", o.rules.max[by], facts[by].what)
}

// describe makes s what is used, and of how much.
func (o *outcome) describe(s *ModelStats) {
	q := &o.rules.quota
	s.RPM, s.MaxRPM = o.usedOf(rpm), q.MaxRPM
	s.TPM, s.MaxTPM = o.usedOf(tpm), q.MaxTPM
	s.RPD, s.MaxRPD = o.usedOf(rpd), q.MaxRPD
	if o.dayStart != 0 {
		s.DayStart = utc(o.dayStart)
	}
	if q.MaxInputTPM > 0 {
		s.InputTPM, s.MaxInputTPM = o.usedOf(inputTPM), q.MaxInputTPM
	}
	if q.MaxOutputTPM > 0 {
		s.OutputTPM, s.MaxOutputTPM = o.usedOf(outputTPM), q.MaxOutputTPM
	}
	if q.MaxTPD > 0 {
		s.TPD, s.MaxTPD = o.usedOf(tpd), q.MaxTPD
	}
	if q.MaxConcurrent > 0 {
		s.Concurrent, s.MaxConcurrent = o.usedOf(concurrent), q.MaxConcurrent
	}
}

// usedOf returns what is used of a dimension, with what was taken.
func (o *outcome) usedOf(d dimension) int { return int(o.used[d] + o.taken[facts[d].unit]) }

// codeOf returns the code of the limit of a name, and whatIs what it limits. Limits
// that are not a model's are a project's.
func codeOf(name string) DecisionCode {
	for d := range facts {
		if facts[d].name == name {
			return facts[d].code
		}
	}
	return DecisionProjectLimit
}

func whatIs(name string) string {
	for d := range facts {
		if facts[d].name == name {
			return facts[d].what
		}
	}
	return "what the project may use"
}
