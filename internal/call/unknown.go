package call

import (
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// unknownUsage is the usage of a call whose response has reported nothing.
var unknownUsage = llm.Usage{Input: -1}

// commit ends the reservation with what the call has used and cost. Only a number that the provider
// has reported may lower the charge: a client that leaves in the middle of a stream must not
// pay less than a client that stays.
func (c *Call) commit(used llm.Usage, cost price.Amount) {
	q, _ := c.Limits.Models.Quota(c.Quota)
	tokens := used.TokensBy(c.Request.Provider, q.Count)
	if !used.Exact && !(c.ChargeSeen && used.Output > 0) {
		tokens.Output, tokens.FreeOutput = c.unknownOutput(used.Output, q.Count)
		tokens.Reasoning = q.Count.Dearest(llm.Tokens{Output: tokens.Output}).Reasoning
	}
	c.book(&used, tokens)
	c.addCharge(tokens, cost)
	c.reservation.CommitPriced(tokens, cost)
	c.reservation, c.Cost = nil, cost
}

// addCharge adds what an attempt is charged. Tokens that are not known stay at what was reserved.
func (c *Call) addCharge(tokens llm.Tokens, cost price.Amount) {
	if tokens.Input < 0 {
		tokens.Input = c.estimated.Input
	}
	if tokens.Output < 0 {
		tokens.Output = c.estimated.Output
	}
	c.Charged.Input += int64(tokens.Input)
	c.Charged.Output += int64(tokens.Output)
	if cost != price.Unknown {
		c.Charged.Dollars += cost
	}
	if r := (*admission.Reservation)(c.reservation); r != nil && r.Waited() > 0 {
		c.Charged.Waited = true
	}
}

// unknownOutput returns the output to charge where the provider has not reported it, and
// how much of that the provider does not count. The charge is the largest of what was
// reserved, what was seen, and the estimator's floor, which may be above the reservation:
// estimate cuts that down to what the limits can ever give. An output of -1 leaves the
// reservation as it is.
func (c *Call) unknownOutput(seen int, w llm.TokenWeights) (output, free int) {
	floor := c.Limits.Estimator.Floor(c.base(), &c.Request)
	least := llm.Usage{Output: max(seen, floor)}.TokensBy(c.Request.Provider, w)
	counted, reserved := least.Output-least.FreeOutput, c.estimated.Output-c.estimated.FreeOutput
	if least.Output <= c.estimated.Output && counted <= reserved {
		return -1, 0
	}
	output = max(least.Output, c.estimated.Output)
	return output, output - counted
}
