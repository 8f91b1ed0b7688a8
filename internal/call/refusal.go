package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// maxAutoRetry is the longest wait after which an SDK may try again by itself: the wait
// for a quota's minute, with its margin. After a refusal with a longer wait, the SDK should show
// the error to its caller.
const maxAutoRetry = time.Minute + ratelimit.MaxMargin

// Denied reports whether an error of Acquire means that a limit denies the call. Any other
// error is a fault, or means that the caller has left.
func Denied(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, ratelimit.ErrNever) || errors.Is(err, ratelimit.ErrCrowded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, project.ErrUnpriced) || errors.Is(err, project.ErrUnbounded)
}

// Refusal returns the answer to a call that a limit has denied. It says which project or model the
// limit belongs to, what is left of it, what the call needs, and when to try again.
func (c *Call) Refusal(d *ratelimit.Decision, err error) dialect.Refusal {
	r := c.refusal(d, err)
	if late := (*ratelimit.DeadlineError)(nil); r.RetryAfter > 0 && errors.As(err, &late) && late.Wait > 0 { // without a wait, it is a slot, and nobody knows
		r.Message += " (" + late.Reason() + ")"
	}
	return r
}

func (c *Call) refusal(d *ratelimit.Decision, err error) dialect.Refusal {
	if errors.Is(err, project.ErrUnpriced) {
		return dialect.Refusal{Status: http.StatusForbidden, Message: c.unpricedText(err)}
	}
	if errors.Is(err, project.ErrUnbounded) {
		return dialect.Refusal{Status: http.StatusForbidden, Message: c.unboundedText(err)}
	}
	r := dialect.Refusal{Status: http.StatusTooManyRequests, RetryAfter: d.RetryAfter, Retry: d.RetryAfter <= maxAutoRetry}
	short := c.shortage(d)
	share := d.Share.Window // of which the project has used its share
	r.Tokens = short != nil && short.ofTokens() || share != nil && share.Unit == project.Tokens
	if errors.Is(err, ratelimit.ErrNever) || d.RetryAfter == ratelimit.Never {
		r.Status, r.Code, r.RetryAfter, r.Retry = c.Request.API.NeverStatus(), dialect.CodeNever, 0, false
		r.Message = notSent + c.whyNever(d, short, err)
		return r
	}
	why := c.busyOrPaused(d)
	switch {
	case errors.Is(err, ratelimit.ErrCrowded):
		why = fmt.Sprintf("%s has as many waiting calls as it may have", c.owner())
	case short != nil && short.total && !short.held:
		r.Status, r.RetryAfter, r.Retry = http.StatusPaymentRequired, 0, false
		r.Message = notSent + short.String() + short.stop()
		return r
	case short != nil && d.Share.Projects > 0:
		why = c.shareText(d, short.unit)
	case short != nil:
		why = short.String()
	case why == "" && d.Reason() != "":
		r.Message = notSent + d.Reason() // the reason says when to try again
		return r
	case why == "":
		why = fmt.Sprintf("the limit %q of %s denies it", d.Limit, c.owner())
	}
	when := fmt.Sprintf("in %v", roundedUp(d.RetryAfter))
	if d.Limit == kind.MaxEnqueuedTokens.Name() {
		when = "when a batch of the model has ended, or " + when
	}
	r.Message = fmt.Sprintf("%s%s: try again %s", notSent, why, when)
	return r
}

// stop says, of a limit that gives nothing back, what to do instead of trying again.
func (s *shortage) stop() string {
	if s.run {
		return ": stop, or begin a new run"
	}
	return ": this budget does not reset; do not retry"
}

// notSent begins each message, so that nobody takes it for the provider's own.
const notSent = "not sent: "

// whyNever says why a call can never pass.
func (c *Call) whyNever(d *ratelimit.Decision, short *shortage, err error) string {
	switch {
	case short != nil:
		return short.neverText()
	case err != nil:
		return message.Plain(err)
	case d.Reason() != "":
		return d.Reason()
	}
	return fmt.Sprintf("the limit %q of %s is smaller than this call: it can never pass", d.Limit, c.owner())
}
