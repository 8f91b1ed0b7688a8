package llmhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// exchange is one call and its response: reserve, send, read the provider's limits, meter,
// settle.
type exchange struct {
	*call.Call
	transport   *transport
	httpRequest *http.Request
	body        outgoing
}

// calls is a pool of calls: each has one and a half kilobytes.
var calls = sync.Pool{New: func() any { return new(call.Call) }}

// free gives back the call, which is settled and which nothing uses any more.
func (x *exchange) free() {
	*x.Call = call.Call{}
	calls.Put(x.Call)
	x.Call = nil
}

func (x *exchange) run() (*http.Response, error) {
	if refusal, err := x.acquire(); refusal != nil || err != nil {
		return refusal, err
	}
	hideUsage := x.edit()
	response, err := x.send()
	if err != nil {
		if x.httpRequest.Context().Err() != nil {
			x.Abandoned(x.body.began.Load())
		} else {
			x.Unanswered(x.body.began.Load())
		}
		return nil, err
	}
	x.body.text, x.Fit.Body, response.Request = nil, nil, x.httpRequest // the copy of the body may go
	if tokens := x.Fitted(); tokens > 0 {
		if response.Header == nil {
			response.Header = http.Header{}
		}
		response.Header[fieldFit] = []string{strconv.Itoa(tokens)}
	}
	if response.StatusCode/100 != 2 {
		return x.fail(response), nil
	}
	x.Hear(x.httpRequest.Context(), response.StatusCode, response.Header, nil)
	return x.metered(response, hideUsage), nil
}

// errNoResponse is the error of a transport that breaks the contract of [http.RoundTripper].
var errNoResponse = errors.New("ratelimit: the transport has returned no response and no error")

// send sends the request. If the transport panics, the call is settled all the same: the program may
// recover, and nobody else would free the call's slots.
func (x *exchange) send() (response *http.Response, err error) {
	returned := false
	defer func() {
		if !returned {
			x.Unanswered(x.body.began.Load())
		}
	}()
	base := x.transport.base
	response, err = base.RoundTrip(x.body.of(x.httpRequest, base))
	returned = true
	switch {
	case err != nil:
	case response == nil:
		err = errNoResponse
	case response.Body == nil: // http.Client lets that pass, too
		response.Body = http.NoBody
	}
	return response, err
}

// acquire reserves what the call is estimated to use. For a call that a limit denies, it
// returns the response that the caller gets.
func (x *exchange) acquire() (refusal *http.Response, err error) {
	t := x.transport
	x.Model = x.Request.Model
	if t.quotaOf != nil {
		x.Model = t.quotaOf(x.Request.Provider, x.Request.Model)
	}
	if t.projectOf != nil {
		x.Project = t.projectOf(x.httpRequest)
	}
	if t.tokenizer != nil {
		x.Request.CountWith(x.body.text, t.tokenizer)
		x.ExactPrompt = true
	}
	ctx := x.httpRequest.Context()
	var d ratelimit.Decision
	if t.reject {
		d, err = x.Try(ctx)
	} else {
		d, err = x.Acquire(ctx)
	}
	switch {
	case err == nil && d.Allowed:
		return nil, nil
	case err == nil, call.Denied(ctx, err):
		return x.refuse(&d, err), nil
	default:
		return nil, fault{err}
	}
}

// fault is an error that reports timeouts as those of [http.Transport] do.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }
func (f fault) Timeout() bool { return errors.Is(f.error, context.DeadlineExceeded) }

// refuse returns the response to a call that a limit denies, in the form of its provider's errors.
func (x *exchange) refuse(d *ratelimit.Decision, err error) *http.Response {
	r := x.Refusal(d, err)
	r.Retry = r.Retry && err == nil // a call that has waited in vain should not come back by itself
	r.CapRetryAfter(dialect.DefaultRetryAfterMax, time.Now())
	header, text := x.Request.Refuse(r)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), StatusCode: r.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
		Request: x.httpRequest,
	}
}

// fieldFit is the header of a response that says to how many tokens of each answer the call's max_tokens was lowered.
const fieldFit = "X-Ratelimit-Fit"

// edit makes the request ask for the usage of a stream that would not report it, and lowers its max_tokens if it was
// fitted. It reports whether it asks for usage: the caller must not see what it has not asked for.
func (x *exchange) edit() (hideUsage bool) {
	if asking, ok := x.Request.AskUsage(x.body.text); ok && !x.transport.leaveStreams && !call.Signed(x.httpRequest.Header, x.httpRequest.URL.RawQuery) {
		x.body.text = slices.Concat(asking...)
		return true
	}
	if fitted, ok := x.Request.Edited(x.body.text); ok {
		x.body.text = slices.Concat(fitted...)
	}
	return false
}

// fail settles a call that the provider has answered with an error.
func (x *exchange) fail(response *http.Response) *http.Response {
	var text []byte
	if x.ReadsError(response.StatusCode) {
		text, _ = io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
		response.Body = call.Rewound(text, response.Body)
	}
	x.Failed(x.httpRequest.Context(), response.StatusCode, response.Header, text)
	return response
}
