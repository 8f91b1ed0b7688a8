package call

import (
	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/llm"
)

// estimate returns how many tokens to reserve. An estimate must make no call impossible:
// where a limit is smaller than the estimate, all of the limit is reserved. Only a prompt
// that is certainly longer than the limit is left as it is, so that the limit denies it.
// expectedPrice does the same with dollars. Limits that reserve the most of a call are left out of it.
func (c *Call) estimate(q *ratelimit.ModelQuota, caps *engine.Caps) llm.Tokens {
	c.expected = c.withinBound(c.expected)
	t := c.expected
	certain := c.certainPrompt()
	all := amounts{t.Input, t.Output, certain}
	least := leastMaxima(q)
	all.fit(int(caps.Tokens))
	all.fit(least[kind.TokensInFlight])
	if cached := dialect.CachedIsFree(c.Request.Provider) && !q.Count.CachedInput.IsSet(); cached || c.QuotaGuessed {
		certain = 0
	} else {
		certain = q.Count.LeastInput(certain)
	}
	t = q.Count.Dearest(llm.Tokens{
		Input: all.input, FreeInput: max(all.input-(t.Input-t.FreeInput), 0),
		Output: all.output, FreeOutput: max(all.output-(t.Output-t.FreeOutput), 0),
	})
	input, output := q.Count.Count(t)
	counted := amounts{int(input), int(output), certain}
	counted.fitInput(caps.Of(least[kind.Input]))
	if most := caps.Of(least[kind.Output]); most > 0 {
		counted.output = min(counted.output, most)
	}
	counted.fit(caps.Of(least[kind.Tokens]))
	return q.Count.AtMost(t, counted.input, counted.output)
}

// leastMaxima returns the smallest maximum of a quota for each unit; 0 is none.
func leastMaxima(q *ratelimit.ModelQuota) (least [kind.Units]int) {
	for k := range kind.Models {
		n, of := *(*state.Quota)(q).Max(k), &least[k.Unit()]
		if n > 0 && (*of == 0 || n < *of) {
			*of = n
		}
	}
	return least
}

// caps returns what the call may be expected to use at most by the limits of its owners.
func (c *Call) caps() (caps engine.Caps) {
	if c.Limits.Projects != nil {
		caps = hidden.Of[engine.Projects](c.Limits.Projects).Caps(engine.OwnersOf(&c.Call))
	}
	return caps
}

// certainPrompt returns how many tokens the prompt has for certain.
func (c *Call) certainPrompt() int {
	if c.ExactPrompt {
		return c.Request.Prompt
	}
	return c.Request.Prompt / 2 // the estimate by characters is at most twice the truth
}

// amounts is how many tokens a call is estimated to use, and how many tokens its prompt
// has for certain.
type amounts struct{ input, output, certain int }

// fit cuts the amounts down to a limit on input and output together; 0 is no limit.
func (a *amounts) fit(limit int) {
	a.fitInput(limit)
	if limit > 0 {
		a.output = min(a.output, max(limit-a.input, 0))
	}
}

// fitInput cuts the input down to a limit, unless the prompt is certainly longer; 0 is no limit.
func (a *amounts) fitInput(limit int) {
	if limit > 0 && a.certain <= limit {
		a.input = min(a.input, limit)
	}
}
