package call

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// unknownUsage is the usage of a call whose response has reported nothing.
var unknownUsage = llm.Usage{Input: -1, Units: llm.UnknownUnits}

// withUnits returns the usage with all units that the call can use where the response does not report them. A call that is
// paid for by its units uses no tokens.
func (c *Call) withUnits(used llm.Usage) llm.Usage {
	used = c.Request.Used(used)
	if c.quoted.byUnits {
		used.Input, used.Output, used.Exact = 0, 0, true
	}
	return used
}

// ending is how a call has ended, as far as it matters to a call whose usage is not known.
type ending uint8

const (
	whole   ending = iota // its answer has come to its end
	cut                   // its answer was cut off, or its caller has left before there was one
	stopped               // its answer was ended, because its reservation was not extended
	failed                // there was no answer, and it may cost what was reserved
	erred                 // the provider has answered with an error of its own, and costs no more than was expected
)

// mostOutput returns the most output that a call can have had of which so much was seen, as far as that
// is known. If its answer was cut off, that is all that was allowed. For an answer that has ended, it is
// the estimator's floor. A call that has failed is charged its reservation, and no more.
//
// In dollars, a request without a bound allows all that its model can write: a budget must never pay for
// less than was used. In tokens it allows nothing above the floor: limits on tokens pace calls, and a
// charge of all that a model can write would block a project for many windows.
func (c *Call) mostOutput(seen, allowed int) int {
	switch c.ending {
	case failed, erred:
		return 0
	case stopped: // the provider may have generated everything that was reserved before it noticed the cut
		return min(max(c.stream.came, c.stream.output), c.bound.Output)
	case cut:
		seen = max(seen, allowed)
	}
	return max(seen, c.Limits.Estimator.Floor(c.base(), &c.Request))
}

// commit ends the reservation with what the call has used and cost. Only a number that the provider
// has reported may lower the charge: a client that leaves in the middle of a stream must not
// pay less than a client that stays.
func (c *Call) commit(used llm.Usage, cost price.Amount) {
	q, _ := c.Limits.Models.Quota(c.Model)
	tokens := dialect.TokensOf(used, c.Request.Provider, q.Count)
	if !used.Exact && !(c.ChargeSeen && used.Output > 0) {
		tokens.Output, tokens.FreeOutput = c.unknownOutput(used.Output, q.Count)
		tokens.Reasoning = q.Count.Dearest(llm.Tokens{Output: tokens.Output}).Reasoning
	}
	switch {
	case used.Exact:
	case c.ending == erred:
		tokens = c.Tokens
	default:
		(*engine.Reservation)(c.reservation).Inexact()
	}
	(*engine.Reservation)(c.reservation).Count(used.Units)
	c.book(&used, tokens)
	c.addCharge(tokens, cost)
	c.reservation.CommitPriced(tokens, cost)
	c.reservation, c.Cost = nil, cost
}

// addCharge adds what an attempt is charged. Tokens that are not known stay at what was reserved.
func (c *Call) addCharge(tokens llm.Tokens, cost price.Amount) {
	if tokens.Input < 0 {
		tokens.Input = c.Tokens.Input
	}
	if tokens.Output < 0 {
		tokens.Output = c.Tokens.Output
	}
	c.Charged.Input += int64(tokens.Input)
	c.Charged.Output += int64(tokens.Output)
	if cost != price.Unknown {
		c.Charged.Dollars += cost
	}
	if r := (*engine.Reservation)(c.reservation); r != nil && r.Waited() > 0 {
		c.Charged.Waited = true
	}
}

// unknownOutput returns the output to charge where the provider has not reported it, and
// how much of that the provider does not count. The charge is the larger of what was
// reserved and of mostOutput, which may be above the reservation: estimate cuts that down
// to what the limits can ever give. An output of -1 leaves the reservation as it is.
func (c *Call) unknownOutput(seen int, w llm.TokenWeights) (output, free int) {
	least := dialect.TokensOf(llm.Usage{Output: c.mostOutput(seen, c.Request.Bound())}, c.Request.Provider, w)
	counted, reserved := least.Output-least.FreeOutput, c.Tokens.Output-c.Tokens.FreeOutput
	if least.Output <= c.Tokens.Output && counted <= reserved {
		return -1, 0
	}
	output = max(least.Output, c.Tokens.Output)
	return output, output - counted
}
