package llmhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// call is one call of a model, on its straight line: ask, send, hear, meter, settle.
type call struct {
	*transport
	request *http.Request
	sent    sending // the request's body
	asks    llm.Request
	quota   string // the model that is charged
	project string

	reservation *ratelimit.Reservation
}

func (c *call) run() (*http.Response, error) {
	if denied, err := c.acquire(); denied != nil || err != nil {
		return denied, err
	}
	veiled := c.askUsage()
	response, err := c.base.RoundTrip(c.sent.request(c.request, c.base))
	if err != nil {
		c.settleUnanswered()
		return nil, err
	}
	c.sent.text, response.Request = nil, c.request // we keep the body no longer
	if response.StatusCode/100 != 2 {
		return c.failed(response), nil
	}
	c.hear(response, nil)
	return c.metered(response, veiled), nil
}

// acquire reserves what the call is thought to use, in its turn. Where it is not to
// be sent, it returns the answer.
func (c *call) acquire() (denied *http.Response, err error) {
	c.quota = c.asks.Model
	if c.quotaOf != nil {
		c.quota = c.quotaOf(c.asks)
	}
	if c.projectOf != nil {
		c.project = c.projectOf(c.request)
	}
	if c.tokenizer != nil {
		c.asks.CountWith(c.sent.text, c.tokenizer)
	}
	ctx := c.request.Context()
	d, err := c.ask(ctx, c.estimate())
	switch {
	case err == nil && d.Allowed:
		return nil, nil
	case err == nil, refusal(err) && ctx.Err() == nil:
		return c.refuse(d, err), nil
	default:
		return nil, fault{err}
	}
}

// fault is an error that tells timeouts as those of [http.Transport] do.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }
func (f fault) Timeout() bool { return errors.Is(f.error, context.DeadlineExceeded) }

// refusal reports whether an error says that the limits do not let a call pass, and
// is no fault.
func refusal(err error) bool {
	return errors.Is(err, ratelimit.ErrNever) || errors.Is(err, ratelimit.ErrCrowded) || errors.Is(err, context.DeadlineExceeded)
}

// ask asks the limiter, or the projects' limiter, which asks both.
func (c *call) ask(ctx context.Context, tokens llm.Tokens) (d ratelimit.Decision, err error) {
	if c.projects == nil {
		through := c.limiter.AcquireCall
		if c.reject {
			through = c.limiter.TryAcquireCall
		}
		c.reservation, d, err = through(ctx, ratelimit.Call{Model: c.quota, Tokens: tokens, MaxWait: c.maxWait})
		return d, err
	}
	through := c.projects.Acquire
	if c.reject {
		through = c.projects.Take
	}
	var said project.Decision
	c.reservation, said, err = through(ctx, project.Call{Project: c.project, Model: c.quota, Tokens: tokens, MaxWait: c.maxWait})
	if said.Model != nil {
		return *said.Model, err
	}
	return ratelimit.Decision{Allowed: said.Allowed, Reason: said.Exceeded, RetryAfter: said.RetryAfter}, err
}

// askUsage lets a stream tell what it uses, if it would not. It reports whether the
// caller is not to see that.
func (c *call) askUsage() (veiled bool) {
	if c.leaveStreams || signed(c.request.Header) {
		return false
	}
	asking, ok := c.asks.AskUsage(c.sent.text)
	if ok {
		c.sent.text = asking
	}
	return ok
}

// settleUnanswered settles a call that has got no answer: what never left costs
// nothing, and what did may have cost all that was reserved.
func (c *call) settleUnanswered() {
	if !c.sent.began.Load() {
		c.reservation.Cancel()
		return
	}
	c.reservation.Commit(-1, -1)
}

// mostOfError is how many bytes of an error are looked at.
const mostOfError = 64 << 10

// failed settles a call that the provider has refused: it counts as a request, and
// has used no tokens. One in which something broke may have used all that was
// reserved.
func (c *call) failed(response *http.Response) *http.Response {
	var text []byte
	used := 0
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == llm.StatusOverloaded:
		text, _ = io.ReadAll(io.LimitReader(response.Body, mostOfError))
		response.Body = resumed(text, response.Body)
	case status >= http.StatusInternalServerError:
		used = -1
	}
	c.hear(response, text)
	c.reservation.Commit(used, used)
	return response
}

// hear lets the limiter know what the provider says about its limits.
func (c *call) hear(response *http.Response, text []byte) {
	said := llm.ReadLimits(c.asks.Provider, response.StatusCode, response.Header, text, time.Now())
	c.limiter.Heed(c.request.Context(), c.quota, said)
}
