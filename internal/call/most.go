package call

import (
	"fmt"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// setBound finds out the most that the call can use, if one of its limits reserves that, and returns the most that it
// can cost: [price.Unknown] if nobody knows, 0 if no limit in dollars reserves it.
func (c *Call) setBound(q *ratelimit.ModelQuota, caps *project.Caps) price.Amount {
	c.quote()
	c.bound = llm.Tokens{}
	if !caps.MostTokens && !caps.MostDollars && q.ReserveTokens != project.ReserveMost && !cuts(q, caps) {
		return 0
	}
	input, output, known := c.Request.Most(c.Prices.maxima(c.priceProvider(), c.Request.Model))
	if !known {
		c.bound = llm.Tokens{Input: -1, Output: -1}
	} else {
		c.bound = llm.Tokens{Input: input, Output: output}
	}
	switch {
	case !caps.MostDollars && !caps.CutDollars || c.quoted.price == nil:
		return 0
	case !known && c.most(maxTotal, maxTotal, "") > c.most(0, 0, ""):
		return price.Unknown
	}
	return min(c.most(max(c.bound.Input, 0), max(c.bound.Output, 0), ""), maxReserved)
}

// allowedOutput returns the most output tokens that the request allows or its model can write, or 0 if nobody knows.
func (c *Call) allowedOutput() int {
	_, output, _ := c.Request.Most(c.Prices.maxima(c.priceProvider(), c.Request.Model))
	return output
}

// withinBound returns the tokens that the call is expected to use, and no more than it can use if that is known.
func (c *Call) withinBound(t llm.Tokens) llm.Tokens {
	if c.bound.Input > 0 || c.bound.Output > 0 {
		t.Input, t.Output = min(t.Input, c.bound.Input), min(t.Output, c.bound.Output)
		t.FreeInput, t.FreeOutput = min(t.FreeInput, t.Input), min(t.FreeOutput, t.Output)
	}
	return t
}

// unboundedText says why a call is denied of which nobody knows how much it can use, and what to do. The error names
// the owner of a limit that reserves the most of a call.
func (c *Call) unboundedText(err error) string {
	why := strings.TrimPrefix(err.Error(), project.ErrUnbounded.Error()+", ")
	what, help := "the most that "+c.model()+" can write", "set "+c.Request.MaxOutputName()+", or max_output"
	switch {
	case c.batch:
		what, help = "the most that its calls can use", "set max_tokens in all of them, or context and max_output"
	case c.allowedOutput() > 0: // a part of the prompt is not in the body: the context window alone bounds it
		what, help = "the length of the prompt of this call, a part of which is stored elsewhere,", "set context"
	}
	return fmt.Sprintf("%s%s is not known, %s: %s for the model in the prices of the configuration", notSent, what, why, help)
}

// maxima returns what is published of a model.
func (p *Prices) maxima(provider, model string) llm.Maxima {
	if p == nil {
		return price.Known().Maxima(provider, model)
	}
	return p.Table.Maxima(provider, model)
}
