package llmhttp

import "dappco.re/go/core/go-ratelimit/llm"

// estimate returns how many tokens to reserve. It is a guess, so it makes no call
// impossible: where a limit could never give as much, it is all that there is, unless
// the prompt alone is certain to be more.
func (c *call) estimate() llm.Tokens {
	t := c.estimator.Estimate(c.project, &c.asks)
	least := c.leastInput()
	g := guess{t.Input - t.FreeInput, t.Output - t.FreeOutput, least}
	if llm.CachedIsFree(c.asks.Provider) {
		g.least = 0
	}
	q, _ := c.limiter.Quota(c.quota)
	g.fitInput(q.MaxInputTPM)
	if q.MaxOutputTPM > 0 {
		g.output = min(g.output, q.MaxOutputTPM)
	}
	g.fit(q.MaxTPM)
	g.fit(q.MaxTPD)
	t.Input, t.Output = g.input+t.FreeInput, g.output+t.FreeOutput
	if c.projects == nil {
		return t
	}
	p := c.projects.Limit(c.project)
	g = guess{t.Input, t.Output, least}
	g.fit(p.TokensPerMinute)
	g.fit(p.TokensPerHour)
	g.fit(p.TokensPerDay)
	return llm.Tokens{Input: g.input, Output: g.output, FreeInput: min(t.FreeInput, g.input), FreeOutput: min(t.FreeOutput, g.output)}
}

// leastInput returns how many tokens the prompt has for certain: what its characters
// tell may be twice as many.
func (c *call) leastInput() int {
	if c.tokenizer != nil {
		return c.asks.Prompt
	}
	return c.asks.Prompt / 2
}

// guess is how many tokens a call may use.
type guess struct{ input, output, least int }

// fit makes it fit a limit on both together; 0 is none.
func (g *guess) fit(most int) {
	g.fitInput(most)
	if most > 0 {
		g.output = min(g.output, max(most-g.input, 0))
	}
}

func (g *guess) fitInput(most int) {
	if most > 0 && g.least <= most {
		g.input = min(g.input, most)
	}
}
