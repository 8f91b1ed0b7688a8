package call

import (
	"context"
	"sort"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Fit says that the request's bound on its answers (max_tokens) may be lowered to what is left of the limits that
// reserve the most of the call. The zero Fit says that it may not.
type Fit struct {
	Body []byte // of the request
	Min  int    // the least tokens of each answer to which the bound may be lowered
}

// fitAttempts is how often a call is asked for with a lower bound before it waits or is denied: others may take what
// is left in the meantime.
const fitAttempts = 3

// Fitted returns how many tokens each answer may have if the request's bound was lowered to that, or else 0.
func (c *Call) Fitted() int {
	if c.unfitted == nil {
		return 0
	}
	return c.Request.MaxOutput
}

// tryFitted asks the limits without waiting. Where those that reserve the most of the call deny it, tryFitted lowers
// the request's bound to what is left, and asks again. ok is false if the call was not admitted: then its bound is as
// the request has it.
func (c *Call) tryFitted(ctx context.Context) (d ratelimit.Decision, ok bool) {
	c.unfit() // an earlier attempt of the call may have been fitted
	ctx = engine.Tentatively(ctx)
	d, err := c.try(ctx)
	for range fitAttempts {
		if err != nil || d.Allowed || !c.lower(c.fitting(&d)) {
			break
		}
		d, err = c.try(ctx)
	}
	if err == nil && d.Allowed {
		return d, true
	}
	c.unfit()
	return d, false
}

// acquireFitted is Acquire for a call that may be fitted. A call that has waited for all that it may use in vain waits
// once more for what is left by then, behind the calls that wait already.
func (c *Call) acquireFitted(ctx context.Context) (ratelimit.Decision, error) {
	if d, ok := c.tryFitted(ctx); ok {
		return d, nil
	}
	defer func(own time.Duration) { c.MaxWait = own }(c.MaxWait)
	for range fitAttempts {
		began, bounded := time.Now(), c.MaxWait > 0
		var d ratelimit.Decision
		err := c.wait(engine.Tentatively(ctx), &d)
		if !Denied(ctx, err) {
			return d, err
		}
		c.MaxWait = max(c.MaxWait-time.Since(began), 0)
		if bounded && c.MaxWait == 0 || !c.lower(c.fitting(&d)) {
			break
		}
	}
	c.unfit()
	return c.try(ctx)
}

// lower sets max_tokens of the request to a smaller number, and reports whether that number is allowed.
func (c *Call) lower(tokens int) bool {
	if tokens < c.Fit.Min || tokens < c.Fit.Min+c.Request.ThinkingBudget(c.Fit.Body) {
		return false
	}
	own := c.Request
	if !c.Request.SetMaxOutput(c.Fit.Body, tokens) {
		return false
	}
	if c.unfitted == nil {
		c.unfitted = &own
	}
	c.expected = llm.Tokens{}
	return true
}

// unfit gives the request its own bound again.
func (c *Call) unfit() {
	if c.unfitted != nil {
		c.Request, c.unfitted, c.expected = *c.unfitted, nil, llm.Tokens{}
	}
}

// fitting returns how many tokens each answer may have at most so that what is left suffices for the call, in all
// limits at once that deny it and reserve the most of it. It is 0 if no number of tokens would do, and -1 if something
// else denies the call as well.
func (c *Call) fitting(d *ratelimit.Decision) int {
	q, _ := c.Limits.Models.Quota(c.Model)
	if !c.deniedByMost(d, &q) || c.Request.Fallbacks {
		return -1
	}
	request, maxima := c.Request, c.Prices.maxima(c.priceProvider(), c.Request.Model)
	tooMuch := func(i int) bool {
		request.MaxOutput = i + 1 // 0 would be no bound
		input, output, ok := request.Most(maxima)
		most := llm.Tokens{Input: input, Output: output}
		return !ok || !c.hasLeft(d, most) || !c.modelHasLeft(d, &q, most)
	}
	return sort.Search(c.bound.Output/max(request.Answers, 1), tooMuch)
}

// deniedByMost reports whether limits that reserve the most of a call deny it, and no others.
func (c *Call) deniedByMost(d *ratelimit.Decision, q *ratelimit.ModelQuota) bool {
	if d.Allowed || c.bound.Output <= 0 || d.Limit == project.Concurrent || d.Share.Window != nil {
		return false
	}
	denied := false
	for _, s := range d.Windows() {
		if s.RetryAfter == 0 {
			continue
		}
		denied = s.Window.Most
		if !denied {
			return false
		}
	}
	if d.Code == ratelimit.DecisionProjectLimit {
		return denied
	}
	k, ok := kind.Named(strings.TrimSuffix(d.Limit, kind.PaceEnd))
	return ok && k.Unit().Name() == project.Tokens && q.ReserveTokens == project.ReserveMost
}

// hasLeft reports whether every window that denies the call has at least the given tokens left.
func (c *Call) hasLeft(d *ratelimit.Decision, most llm.Tokens) bool {
	for _, s := range d.Windows() {
		switch {
		case s.RetryAfter == 0:
		case s.Window.Unit == project.Tokens && int64(most.Input)+int64(most.Output) > s.Remaining:
			return false
		case s.Window.Unit == project.Dollars && int64(c.most(most.Input, most.Output, "")) > s.Remaining:
			return false
		}
	}
	return true
}

// modelHasLeft reports whether the model's quota has at least the given tokens left, if it reserves the most of a call.
func (c *Call) modelHasLeft(d *ratelimit.Decision, q *ratelimit.ModelQuota, most llm.Tokens) bool {
	if q.ReserveTokens != project.ReserveMost {
		return true
	}
	input, output := q.Count.Count(q.Count.Dearest(most))
	needs := [kind.Units]int64{kind.Tokens: input + output, kind.Input: input, kind.Output: output, kind.TokensInFlight: int64(most.Input) + int64(most.Output)}
	for l := range d.Stats.Limits() {
		k, _ := kind.Named(l.Name)
		left := int64(l.Max) - int64(l.Used)
		if l.Name == d.Limit {
			left -= int64(d.Elsewhere)
		}
		if l.Max > 0 && k.Unit().Name() == project.Tokens && needs[k.Unit()] > left {
			return false
		}
	}
	return true
}
