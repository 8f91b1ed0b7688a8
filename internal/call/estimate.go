package call

import "dappco.re/go/core/go-ratelimit/llm"

// estimate returns how many tokens to reserve. An estimate must make no call impossible:
// where a limit is smaller than the estimate, all of the limit is reserved. Only a prompt
// that is certainly longer than the limit is left as it is, so that the limit denies it.
func (c *Call) estimate() llm.Tokens {
	if c.expected == (llm.Tokens{}) {
		c.expected = c.Limits.Estimator.Estimate(c.Project, &c.Request)
	}
	t := c.expected
	certain := c.Request.Prompt / 2 // the estimate by characters is at most twice the truth
	if c.ExactPrompt {
		certain = c.Request.Prompt
	}
	all := amounts{t.Input, t.Output, certain}
	if c.Limits.Projects != nil {
		p := c.Limits.Projects.Limit(c.Project)
		for _, limit := range []int{p.TokensPerMinute, p.TokensPerHour, p.TokensPerDay, p.TokensPerMonth} {
			all.fit(limit)
		}
	}
	if c.QuotaGuessed || llm.CachedIsFree(c.Request.Provider) {
		certain = 0
	}
	counted := amounts{min(t.Input-t.FreeInput, all.input), min(t.Output-t.FreeOutput, all.output), certain}
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
