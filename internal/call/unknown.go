package call

import "dappco.re/go/core/go-ratelimit/llm"

// unknown is the usage of a call whose response has told nothing.
var unknown = llm.Usage{Input: -1}

// commit ends the reservation with what was used. Only a figure that the provider has said
// may lower the charge: a client that leaves in the middle of a stream must not pay less
// than one that stays.
func (c *Call) commit(used llm.Usage) {
	tokens := used.Tokens(c.Asks.Provider)
	if !used.Exact && !(c.ChargeSeen && used.Output > 0) {
		tokens.Output, tokens.FreeOutput = c.unknownOutput(used.Output)
	}
	c.reservation.CommitTokens(tokens)
	c.reservation = nil
}

// unknownOutput returns the output to charge where the provider has not said it, and how
// much of that is free: the most of what was reserved, what was seen, and the estimator's
// floor. The reservation may be below the floor, because it is cut down to what the limits
// can ever give. An output of -1 lets the reservation stand.
func (c *Call) unknownOutput(seen int) (output, free int) {
	floor := c.Limits.Estimator.Floor(c.Project, &c.Asks)
	least := llm.Usage{Output: max(seen, floor)}.Tokens(c.Asks.Provider)
	counted, reserved := least.Output-least.FreeOutput, c.asked.Output-c.asked.FreeOutput
	if least.Output <= c.asked.Output && counted <= reserved {
		return -1, 0
	}
	output = max(least.Output, c.asked.Output)
	return output, output - max(counted, reserved)
}
