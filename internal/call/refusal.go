package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// mostRetried is the longest wait after which an SDK may try again by itself. Beyond
// it somebody should know.
const mostRetried = time.Minute

// Denied reports whether an error of a call says that the limits do not let it pass,
// and is no fault.
func Denied(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, ratelimit.ErrNever) || errors.Is(err, ratelimit.ErrCrowded) || errors.Is(err, context.DeadlineExceeded)
}

// Refusal returns what to tell the caller of a call that was denied.
func (c *Call) Refusal(d *project.Decision, err error) llm.Refusal {
	why := ""
	switch {
	case d.Model != nil && d.Model.Reason != "":
		why = d.Model.Reason
	case d.Exceeded != "":
		why = fmt.Sprintf("the project's limit %q is reached: try again in %v", d.Exceeded, d.RetryAfter.Round(time.Millisecond))
	}
	if err != nil && (why == "" || !errors.Is(err, context.DeadlineExceeded)) {
		why = strings.TrimPrefix(err.Error(), "ratelimit: ")
	}
	r := llm.Refusal{
		Status: http.StatusTooManyRequests, RetryAfter: d.RetryAfter, Retry: d.RetryAfter <= mostRetried,
		Message: fmt.Sprintf("the limiter has not sent %s: %s", c.what(), why),
	}
	if errors.Is(err, ratelimit.ErrNever) || d.RetryAfter == ratelimit.Never {
		r.Status, r.RetryAfter, r.Retry = http.StatusRequestEntityTooLarge, 0, false
	}
	return r
}

// what says which call it is.
func (c *Call) what() string {
	if name := cmp.Or(c.Asks.Model, c.Quota); name != "" {
		return fmt.Sprintf("the call of %q", name)
	}
	return "the request"
}
