package call

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// estimate returns how many tokens to reserve. An estimate must make no call impossible:
// where a limit is smaller than the estimate, all of the limit is reserved. Only a prompt
// that is certainly longer than the limit is left as it is, so that the limit denies it.
func (c *Call) estimate() llm.Tokens {
	if c.expected == (llm.Tokens{}) {
		c.expected = c.Limits.Estimator.Estimate(c.base(), &c.Request)
	}
	t := c.expected
	certain := c.Request.Prompt / 2 // the estimate by characters is at most twice the truth
	if c.ExactPrompt {
		certain = c.Request.Prompt
	}
	all := amounts{t.Input, t.Output, certain}
	if c.Limits.Projects != nil {
		all.fit(int(c.Limits.Projects.MostTokens(project.Owners{Project: c.Project, Key: c.Key, Run: c.Run})))
	}
	q, _ := c.Limits.Models.Quota(c.Quota)
	certain = q.Count.LeastInput(c.Request.Provider, certain)
	if c.QuotaGuessed {
		certain = 0
	}
	t = q.Count.Dearest(llm.Tokens{
		Input: all.input, FreeInput: max(all.input-(t.Input-t.FreeInput), 0),
		Output: all.output, FreeOutput: max(all.output-(t.Output-t.FreeOutput), 0),
	})
	input, output := q.Count.Count(t)
	counted := amounts{int(input), int(output), certain}
	share := c.maxShare()
	counted.fitInput(partOf(q.MaxInputTPM, share))
	if q.MaxOutputTPM > 0 {
		counted.output = min(counted.output, partOf(q.MaxOutputTPM, share))
	}
	counted.fit(partOf(q.MaxTPM, share))
	counted.fit(partOf(q.MaxTPD, share))
	return q.Count.AtMost(t, counted.input, counted.output)
}

// maxShare returns the part of the model's quota that the call's project may use at most.
func (c *Call) maxShare() limit.Percent {
	share := limit.Percent(100)
	if c.Limits.Projects == nil {
		return share
	}
	for id := c.Project; id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] { // those above it, too
		if most := c.Limits.Projects.Limit(id).MaxShare; most > 0 {
			share = min(share, most)
		}
	}
	return share
}

// partOf returns a part of a limit, or 0 if there is no limit. Shares decide by numbers of their own:
// this one is for estimates alone.
func partOf(most int, share limit.Percent) int {
	if most == 0 || share == 100 {
		return most
	}
	return max(1, int(float64(most)*share.Part()))
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
