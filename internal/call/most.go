package call

import (
	"fmt"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// setBound finds out the most that the call can use, if one of its limits reserves that, and returns the most that it
// can cost: [price.Unknown] if nobody knows, 0 if no limit in dollars reserves it.
func (c *Call) setBound(q *ratelimit.ModelQuota, caps *engine.Caps) price.Amount {
	c.quote()
	c.bound = llm.Tokens{}
	if c.quoted.byUnits {
		return min(c.unitsPrice(c.Request.Units), maxReserved)
	}
	if !caps.MostTokens && !caps.MostDollars && q.ReserveTokens != project.ReserveMost && !cuts(q, caps) {
		return 0
	}
	input, output, known := c.Request.Most(c.Prices.maxima(c.priceProvider(), c.Request.Model))
	if !known {
		c.bound = llm.Tokens{Input: -1, Output: -1}
	} else {
		c.bound = llm.Tokens{Input: input, Output: output}
	}
	dollars := price.Amount(0)
	priced := (caps.MostDollars || caps.CutDollars) && c.quoted.price != nil
	if priced {
		dollars = c.mostDollars(c.quoted.price, input, output, known)
	}
	if c.Request.Fallbacks {
		return c.boundOthers(dollars, priced)
	}
	return dollars
}

// mostDollars returns the highest cost of a call with the given tokens at price p, which may be nil. known is false if the
// tokens are no upper bound.
func (c *Call) mostDollars(p *price.Price, input, output int, known bool) price.Amount {
	if p == nil || !known && c.mostBy(p, maxTotal, maxTotal, "") > c.mostBy(p, 0, 0, "") {
		return price.Unknown
	}
	return min(c.mostBy(p, input, output, ""), maxReserved)
}

// boundOthers raises the bound to what the models can use that the call may fall back to. dollars is the most that the
// call costs if none of them answers, and boundOthers returns what it costs if any of them does, unless priced is false.
func (c *Call) boundOthers(dollars price.Amount, priced bool) price.Amount {
	models, ok := c.Request.Others()
	known := ok && c.bound.Input >= 0
	ok = ok && dollars != price.Unknown
	for _, name := range models {
		r := c.Request
		r.Model = name
		input, output, bounded := r.Most(c.Prices.maxima(c.priceProvider(), name))
		c.bound.Input, c.bound.Output = max(c.bound.Input, input), max(c.bound.Output, output)
		known = known && bounded
		more := c.mostDollars(c.Prices.of(c.priceProvider(), name, c.quoted.at), input, output, bounded)
		ok = ok && more != price.Unknown
		dollars = max(dollars, more)
	}
	if !known {
		c.bound = llm.Tokens{Input: -1, Output: -1}
	}
	switch {
	case !priced:
		return 0
	case !ok:
		return price.Unknown
	}
	return dollars
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
	if c.Request.Units[llm.ByteDays] < 0 {
		return fmt.Sprintf("%swhat a vector store keeps for this call is not known, %s: %s", notSent, why, unknownStorage)
	}
	what, help := "the most that "+c.model()+" can write", "set "+c.Request.MaxOutputName()+", or max_output"
	switch {
	case c.Request.Fallbacks:
		what, help = "what the models that this call names can use and cost", "name one model alone, or set a price, context and max_output"
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
