package call

import "dappco.re/go/core/go-ratelimit/llm"

// estimate returns how many tokens to reserve. It is a guess, so it makes no call
// impossible: where a limit could never give as much, it is all that there is, unless
// the prompt alone is certain to be more.
func (c *Call) estimate() llm.Tokens {
	t := c.Limits.Estimator.Estimate(c.Project, &c.Asks)
	least := c.leastInput()
	all := guess{t.Input, t.Output, least}
	if c.Limits.Projects != nil {
		p := c.Limits.Projects.Limit(c.Project)
		all.fit(p.TokensPerMinute)
		all.fit(p.TokensPerHour)
		all.fit(p.TokensPerDay)
		all.fit(p.TokensPerMonth)
	}
	if c.Guessed || llm.CachedIsFree(c.Asks.Provider) {
		least = 0
	}
	counted := guess{min(t.Input-t.FreeInput, all.input), min(t.Output-t.FreeOutput, all.output), least}
	q, _ := c.Limits.Models.Quota(c.Quota)
	counted.fitInput(q.MaxInputTPM)
	if q.MaxOutputTPM > 0 {
		counted.output = min(counted.output, q.MaxOutputTPM)
	}
	counted.fit(q.MaxTPM)
	counted.fit(q.MaxTPD)
	return llm.Tokens{
		Input: all.input, Output: all.output,
		FreeInput: all.input - counted.input, FreeOutput: all.output - counted.output,
	}
}

// leastInput returns how many tokens the prompt has for certain: what its characters
// tell may be twice as many.
func (c *Call) leastInput() int {
	if c.Counted {
		return c.Asks.Prompt
	}
	return c.Asks.Prompt / 2
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
