package ratelimit

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

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
	unit unit
	code DecisionCode
	name string
	what string
}{
	rpd:        {ofRequests, DecisionRPDLimit, "rpd", "requests a day"},
	rpm:        {ofRequests, DecisionRPMLimit, "rpm", "requests a minute"},
	tpm:        {ofTokens, DecisionTPMLimit, "tpm", "tokens a minute"},
	inputTPM:   {ofInput, DecisionInputTPMLimit, "input_tpm", "input tokens a minute"},
	outputTPM:  {ofOutput, DecisionOutputTPMLimit, "output_tpm", "output tokens a minute"},
	tpd:        {ofTokens, DecisionTPDLimit, "tpd", "tokens a day"},
	concurrent: {ofSlots, DecisionConcurrencyLimit, "concurrent", "concurrent requests"},
	paused:     {ofSlots, DecisionPaused, "paused", "calls at all, by the provider's word"},
}

// unit is what is counted. Each has an account.
type unit int

const (
	ofRequests unit = iota
	ofTokens
	ofInput
	ofOutput
	ofSlots
	ofAll // tokens, with those that no quota of a model counts: a project's limits do
	units
)

var unitNames = [units]string{"requests", "tokens", "input", "output", "slots"}

// amounts is how much of each unit.
type amounts [units]int64

const (
	// lease is how long a call may hold its slot. Whoever dies without giving
	// it back holds it no longer.
	lease = 10 * time.Minute

	// slotGuess is when to ask again for a slot that is taken.
	slotGuess = time.Second

	// boundless is the count of a limit that only counts.
	boundless = 1 << 62
)

// rules is a quota made ready.
type rules struct {
	quota   ModelQuota
	max     [dimensions]int64
	limited []maximum

	day   limit.Limit // what a day is
	slots limit.Limit // on concurrent requests

	charged []charged // what a store counts

	// missing is what is less in limited and charged than in max, because others
	// use it; nil: nothing.
	missing *missing
}

// maximum is the most of a dimension that is limited.
type maximum struct {
	dim  dimension
	unit unit
	max  int64
}

// charged is what a store is asked of one unit.
type charged struct {
	unit   unit
	dims   []dimension
	limits []limit.Limit // of each of dims

	// looked is what to look at: limits, and where one of dims is a log with
	// a maximum, one of the same log that only counts, and tells of debts.
	looked []limit.Limit
	log    dimension // of that one
}

// unknown is the rules of models without a quota, and none those of calls that
// are for no model: they count nothing.
var (
	unknown, _ = newRules(ModelQuota{})
	none       = &rules{}
)

func newRules(q ModelQuota) (*rules, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	r := &rules{quota: q, slots: q.limit(concurrent)}
	r.day, _ = q.day(1)
	for d := range dimensions {
		if r.max[d] = int64(q.max(d)); r.max[d] > 0 {
			r.limited = append(r.limited, maximum{d, facts[d].unit, r.max[d]})
		}
	}
	for u := range units {
		c := charged{unit: u}
		for d := range dimensions {
			if facts[d].unit == u && r.counts(d) {
				c.dims = append(c.dims, d)
				c.limits = append(c.limits, q.limit(d))
			}
		}
		if len(c.dims) == 0 {
			continue
		}
		c.looked = slices.Clone(c.limits)
		for k, d := range c.dims {
			if r.max[d] > 0 && !d.ofDay() {
				c.looked, c.log = append(c.looked, c.limits[k].WithCount(boundless)), d
			}
		}
		r.charged = append(r.charged, c)
	}
	return r, nil
}

// ofDay reports whether a dimension is counted by the day, and not in a log.
func (d dimension) ofDay() bool { return d == rpd || d == tpd }

// counts reports whether a dimension is counted: if it is limited, or if
// everybody wants to see it.
func (r *rules) counts(d dimension) bool { return d <= tpm || r.max[d] > 0 }

// free reports whether nothing limits the model.
func (r *rules) free() bool { return len(r.limited) == 0 }

// limit returns the limit of a dimension of a valid quota.
func (q ModelQuota) limit(d dimension) limit.Limit {
	most := int64(q.max(d))
	if most == 0 {
		most = boundless
	}
	switch d {
	case rpd, tpd:
		day, _ := q.day(most)
		return day
	case concurrent:
		return atATime(most)
	default:
		return limit.New(most, time.Minute+q.Margin).Using(limit.SlidingLog)
	}
}

// atATime returns the limit on so many calls at a time.
func atATime(most int64) limit.Limit { return limit.New(most, lease).Using(limit.SlidingLog) }

func (q ModelQuota) max(d dimension) int {
	return [dimensions]int{q.MaxRPD, q.MaxRPM, q.MaxTPM, q.MaxInputTPM, q.MaxOutputTPM, q.MaxTPD, q.MaxConcurrent, paused: 0}[d]
}

// asksNothing reports whether nothing is asked of something that is limited.
func (r *rules) asksNothing(ask *amounts) bool {
	return slices.ContainsFunc(r.limited, func(most maximum) bool { return ask[most.unit] == 0 })
}

// request is what a call is thought to use, or has used.
type request struct {
	requests      int64
	input, output int64 // that a model's quota counts
	split         bool  // false: their sum is known, and stands in input

	freeInput, freeOutput int64 // that a project's limits count besides
}

// Tokens is how many tokens a call is thought to use, or has used.
type Tokens = llm.Tokens

const maxTokens = 1 << 53 // in one request

// newRequest returns an estimate that is known by its sum.
func newRequest(total int) (request, error) {
	return request{requests: 1, input: int64(total)}, checkTokens(total)
}

// newSplitRequest returns an estimate that is known by its parts.
func newSplitRequest(t Tokens) (request, error) {
	err := cmp.Or(checkTokens(t.Input), checkTokens(t.Output), checkFree(t.FreeInput, t.Input), checkFree(t.FreeOutput, t.Output))
	return request{
		requests: 1, split: true,
		input: int64(t.Input - t.FreeInput), output: int64(t.Output - t.FreeOutput),
		freeInput: int64(t.FreeInput), freeOutput: int64(t.FreeOutput),
	}, err
}

func checkFree(free, all int) error {
	if free < 0 || free > all {
		return fmt.Errorf("ratelimit: %d tokens that do not count, of %d: it must be from 0 to all", free, all)
	}
	return nil
}

func checkTokens(n int) error {
	if n < 0 || int64(n) > maxTokens {
		return fmt.Errorf("ratelimit: %d tokens: it must be from 0 to %d", n, int64(maxTokens))
	}
	return nil
}

// amounts returns what the request uses of each unit. Of a sum that is not known
// by its parts each part may be all, up to what its quota can give.
func (r *rules) amounts(q request) amounts {
	a := amounts{ofRequests: q.requests, ofTokens: q.input + q.output, ofInput: q.input, ofOutput: q.output}
	if !q.split {
		a[ofInput], a[ofOutput] = min(q.input, r.max[inputTPM]), min(q.input, r.max[outputTPM])
	}
	if r.max[concurrent] > 0 {
		a[ofSlots] = 1
	}
	a[ofAll] = a[ofTokens] + q.freeInput + q.freeOutput
	return a
}

// share returns how much of its quota so much takes, of the one of which it takes
// most: line.Whole is all.
func (r *rules) share(ask *amounts) (most int64) {
	for i := range r.limited {
		m := &r.limited[i]
		share := uint64(line.Whole)
		if n := uint64(ask[m.unit]); n < uint64(m.max) {
			hi, lo := bits.Mul64(n, line.Whole)
			share, _ = bits.Div64(hi, lo, uint64(m.max))
		}
		most = max(most, int64(share))
	}
	return most
}
