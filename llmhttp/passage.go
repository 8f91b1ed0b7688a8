package llmhttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// passage is a call on its way through the transport: ask, send, hear, meter, settle.
type passage struct {
	call.Call
	transport *transport
	request   *http.Request
	sent      sending // the request's body
}

func (c *passage) run() (*http.Response, error) {
	if denied, err := c.acquire(); denied != nil || err != nil {
		return denied, err
	}
	veiled := c.askUsage()
	base := c.transport.base
	response, err := base.RoundTrip(c.sent.request(c.request, base))
	if err != nil {
		c.Unanswered(c.sent.began.Load())
		return nil, err
	}
	c.sent.text, response.Request = nil, c.request // we keep the body no longer
	if response.StatusCode/100 != 2 {
		return c.failed(response), nil
	}
	c.Hear(c.request.Context(), response.StatusCode, response.Header, nil)
	return c.metered(response, veiled), nil
}

// acquire reserves what the call is thought to use. Where it is not to be sent, it
// returns the answer.
func (c *passage) acquire() (denied *http.Response, err error) {
	t := c.transport
	c.Quota = c.Request.Model
	if t.quotaOf != nil {
		c.Quota = t.quotaOf(c.Request)
	}
	if t.projectOf != nil {
		c.Project = t.projectOf(c.request)
	}
	if t.tokenizer != nil {
		c.Request.CountWith(c.sent.text, t.tokenizer)
		c.ExactPrompt = true
	}
	ask := c.Acquire
	if t.reject {
		ask = c.Try
	}
	ctx := c.request.Context()
	d, err := ask(ctx)
	switch {
	case err == nil && d.Allowed:
		return nil, nil
	case err == nil, call.Denied(ctx, err):
		return c.refuse(&d, err), nil
	default:
		return nil, fault{err}
	}
}

// fault is an error that tells timeouts as those of [http.Transport] do.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }
func (f fault) Timeout() bool { return errors.Is(f.error, context.DeadlineExceeded) }

// askUsage lets a stream tell what it uses, if it would not. It reports whether the
// caller is not to see that.
func (c *passage) askUsage() (veiled bool) {
	if c.transport.leaveStreams || call.Signed(c.request.Header, c.request.URL.RawQuery) {
		return false
	}
	asking, ok := c.Request.AskUsage(c.sent.text)
	if ok {
		c.sent.text = asking
	}
	return ok
}

// failed settles a call that the provider has refused.
func (c *passage) failed(response *http.Response) *http.Response {
	var text []byte
	if c.ReadsError(response.StatusCode) {
		text, _ = io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
		response.Body = resumed(text, response.Body)
	}
	c.Failed(c.request.Context(), response.StatusCode, response.Header, text)
	return response
}
