package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// mostRetried is the longest wait after which an SDK may try again by itself: that for a
// quota's minute, with its margin. Beyond it somebody should know.
const mostRetried = time.Minute + ratelimit.MaxMargin

// Denied reports whether an error of a call says that the limits do not let it pass,
// and is no fault.
func Denied(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, ratelimit.ErrNever) || errors.Is(err, ratelimit.ErrCrowded) || errors.Is(err, context.DeadlineExceeded)
}

// Refusal returns what to tell the caller of a call that was denied: whose limit it is,
// what is left of it, what the call needs, and when to come back.
func (c *Call) Refusal(d *project.Decision, err error) llm.Refusal {
	r := llm.Refusal{Status: http.StatusTooManyRequests, RetryAfter: d.RetryAfter, Retry: d.RetryAfter <= mostRetried}
	short := c.shortage(d)
	r.Tokens = short != nil && short.tokens
	if errors.Is(err, ratelimit.ErrNever) || d.RetryAfter == ratelimit.Never {
		r.Status, r.RetryAfter, r.Retry = http.StatusRequestEntityTooLarge, 0, false
		r.Message = notSent + c.whyNever(d, short, err)
		return r
	}
	why := c.underWay(d)
	switch {
	case errors.Is(err, ratelimit.ErrCrowded):
		why = fmt.Sprintf("as many calls of %s wait as may", c.owner())
	case short != nil:
		why = short.String()
	case why == "" && d.Model != nil && d.Model.Reason != "":
		r.Message = notSent + d.Model.Reason // which says when to come back
		return r
	case why == "":
		why = fmt.Sprintf("the limit %q of %s denies it", d.Exceeded, c.owner())
	}
	r.Message = fmt.Sprintf("%s%s: try again in %v", notSent, why, told(d.RetryAfter))
	return r
}

// notSent begins what callers are told, so that nobody takes it for the provider's word.
const notSent = "not sent: "

// whyNever says why a call can never pass.
func (c *Call) whyNever(d *project.Decision, short *shortage, err error) string {
	switch {
	case short != nil:
		return short.never()
	case err != nil:
		return message.Plain(err)
	case d.Model != nil && d.Model.Reason != "":
		return d.Model.Reason
	}
	return fmt.Sprintf("the limit %q of %s is smaller than this call: it can never pass", d.Exceeded, c.owner())
}
