package ratelimit

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Tokens is how many tokens a call is thought to use, or has used.
type Tokens = llm.Tokens

// dimension is one of the ways in which a quota limits a model. They are
// checked in this order.
type dimension int

const (
	rpd dimension = iota
	rpm
	tpm
	inputTPM
	outputTPM
	tpd
	concurrent
	paused // by the provider's word: no quota has a maximum of it
	dimensions
)

var facts = [dimensions]struct {
	unit admission.Unit
	code DecisionCode
	name string
	what string
}{
	rpd:        {admission.Requests, DecisionRPDLimit, "rpd", "requests a day"},
	rpm:        {admission.Requests, DecisionRPMLimit, "rpm", "requests a minute"},
	tpm:        {admission.Tokens, DecisionTPMLimit, "tpm", "tokens a minute"},
	inputTPM:   {admission.Input, DecisionInputTPMLimit, "input_tpm", "input tokens a minute"},
	outputTPM:  {admission.Output, DecisionOutputTPMLimit, "output_tpm", "output tokens a minute"},
	tpd:        {admission.Tokens, DecisionTPDLimit, "tpd", "tokens a day"},
	concurrent: {admission.Slots, DecisionConcurrencyLimit, "concurrent", "concurrent requests"},
	paused:     {admission.Slots, DecisionPaused, admission.PausedName, "calls at all, by the provider's word"},
}

// atProvider is added to a dimension's number for the limit that counts what the provider
// counts of it, without the margin of the quota. It denies nothing.
const atProvider = int(dimensions)

// setup is what the rules of a model are made from.
type setup struct {
	quota   ModelQuota
	missing *feedback.Missing // what is less in the limits than in the quota, because others use it; nil: nothing
}

// setupOf returns what rules are made from.
func setupOf(r *admission.Rules) *setup { return r.Setup.(*setup) }

// newRules returns the rules of a quota.
func newRules(q ModelQuota) (*admission.Rules, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	r := &admission.Rules{Setup: &setup{quota: q}, InOrder: true}
	for d := range paused {
		if most := q.max(d); q.counts(d) {
			r.Limits = append(r.Limits, admission.Limit{Name: facts[d].name, ID: int(d), Unit: facts[d].unit, Limit: q.limit(d), Free: most == 0})
		}
		if q.Margin > 0 && q.max(d) > 0 && !d.ofDay() && d != concurrent {
			minute := limit.New(admission.Boundless, time.Minute).Using(limit.SlidingLog)
			r.Limits = append(r.Limits, admission.Limit{ID: int(d) + atProvider, Unit: facts[d].unit, Limit: minute, Free: true})
		}
	}
	return r, nil
}

// unknown returns the rules of a model without a quota: they count, and deny nothing.
func unknown() *admission.Rules {
	r, _ := newRules(ModelQuota{})
	return r
}

// ofDay reports whether a dimension is counted by the day, and not in a log.
func (d dimension) ofDay() bool { return d == rpd || d == tpd }

// counts reports whether a dimension is counted: if it is limited, or if
// everybody wants to see it.
func (q *ModelQuota) counts(d dimension) bool { return d <= tpm || q.max(d) > 0 }

// limit returns the limit of a dimension of a valid quota.
func (q *ModelQuota) limit(d dimension) limit.Limit {
	most := int64(q.max(d))
	if most == 0 {
		most = admission.Boundless
	}
	switch d {
	case rpd, tpd:
		day, _ := q.day(most)
		return day
	case concurrent:
		return admission.AtATime(most)
	default:
		return limit.New(most, time.Minute+q.Margin).Using(limit.SlidingLog)
	}
}

func (q *ModelQuota) max(d dimension) int {
	return [dimensions]int{q.MaxRPD, q.MaxRPM, q.MaxTPM, q.MaxInputTPM, q.MaxOutputTPM, q.MaxTPD, q.MaxConcurrent, paused: 0}[d]
}
