package call

import (
	"context"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// Decide asks the limits whether a call that uses exactly these tokens would pass now, and charges
// nothing. sum is how many tokens it uses in place of t, if its input and output are not known apart.
func (c *Call) Decide(ctx context.Context, sum int, t llm.Tokens) (ratelimit.Decision, error) {
	c.expected, c.Tokens = t, t
	caps := c.caps()
	c.Dollars = c.expectedPrice(&caps)
	asked := c.Call
	if sum > 0 {
		c.Tokens = llm.Tokens{Input: sum}
		asked.Estimated, asked.Dollars = sum, c.dearest(sum)
	}
	c.reserved = asked.Dollars
	return c.Limits.Models.DecideCall(ctx, asked)
}

// dearest returns the price of so many tokens, whether they are of the prompt or of the output.
func (c *Call) dearest(tokens int) price.Amount {
	if c.quoted.price == nil {
		return price.Unknown
	}
	return min(max(c.most(tokens, 0, ""), c.most(0, tokens, "")), maxReserved)
}

// Why returns the reason of a denial: the text of its Refusal.
func (c *Call) Why(d *ratelimit.Decision, err error) string {
	return strings.TrimPrefix(c.Refusal(d, err).Message, notSent)
}
