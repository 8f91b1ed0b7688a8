package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/wire"
	"dappco.re/go/core/go-ratelimit/llm"
)

// noRetry is the delay of a call that is not sent again.
const noRetry time.Duration = -1

// attempt sends the call to a deployment, and relays the answer. If the call should be sent
// again instead, it returns after which delay.
func (x *exchange) attempt(d *deployment) (delay time.Duration, refused *refusal) {
	if len(x.upstream.deployments) > 1 {
		x.tried = append(x.tried, d)
	}
	d.active.Add(1)
	defer d.active.Add(-1)
	if !x.signed {
		for _, name := range partialFields {
			delete(x.r.Header, name)
		}
	}
	body, hideUsage := x.askUsage(d)
	response, err := x.send(d, &body, body.Len())
	if err == nil && hideUsage && refusedForUsage(response) {
		response.Body.Close()
		hideUsage = false
		response, err = x.sendUnasked(d)
	}
	if err != nil {
		return x.unanswered(d, err)
	}
	defer response.Body.Close()
	d.health.observe(response.StatusCode, x.call.Request.Model)
	if s := response.StatusCode; !x.gatewayAccount && (s/100 == 2 || s == http.StatusTooManyRequests) {
		x.upstream.accounts.observe(x.sentKeys())
	}
	if response.StatusCode/100 != 2 {
		return x.answeredWithError(response), nil
	}
	x.release()
	x.keepSaid(x.call.Hear(x.ctx, response.StatusCode, response.Header, nil))
	x.relay(response, hideUsage)
	return noRetry, nil
}

// unanswered settles a call that got no answer. It returns the delay before the next
// attempt, or the refusal.
func (x *exchange) unanswered(d *deployment, err error) (delay time.Duration, refused *refusal) {
	if x.ctx.Err() == nil {
		x.call.Unanswered(x.sent)
		d.markFailed()
	} else {
		x.call.Abandoned(x.sent)
	}
	if delay := x.delayUnlessUntried(backoff(x.Retries)); !x.sent && x.mayRetry(delay) {
		return delay, nil
	}
	return noRetry, x.unreached(err)
}

// answeredWithError settles a call that the provider has answered with an error. The client
// gets the error, unless the call should be sent again: then the error is kept as fallback.
func (x *exchange) answeredWithError(response *http.Response) (delay time.Duration) {
	var text []byte
	var err error
	if x.call.ReadsError(response.StatusCode) || x.Retries < x.upstream.Retries {
		text, err = io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
	}
	said := x.call.Failed(context.WithoutCancel(x.ctx), response.StatusCode, response.Header, text)
	x.keepSaid(said)
	x.throttled = said.Cause != ""
	retry := retryable(response, said.Cause) || x.untried() && concernsOneAccount(response.StatusCode, said.Cause)
	if delay := x.delayUnlessUntried(retryDelay(response, said, x.Retries)); retry && err == nil && len(text) < call.MaxErrorBody && x.mayRetry(delay) {
		x.fallback = &fallback{response, text, x.gatewayAccount, x.hider, x.throttled}
		return delay
	}
	x.forward(response, io.MultiReader(bytes.NewReader(text), response.Body))
	return noRetry
}

// fallback is an error of the provider that the client gets if no later attempt is answered.
type fallback struct {
	response *http.Response
	text     []byte // the response's body

	// The values that [exchange] had for this attempt.
	gatewayAccount bool
	hider          *hider
	throttled      bool
}

// orFallback forwards the fallback in place of a refusal, if there is one.
func (x *exchange) orFallback(refused *refusal) *refusal {
	if x.fallback == nil || refused.outcome == Left {
		return refused
	}
	x.Limit, x.Scope, x.Owner, x.Error = "", "", "", ""
	x.gatewayAccount, x.hider, x.throttled = x.fallback.gatewayAccount, x.fallback.hider, x.fallback.throttled
	x.forward(x.fallback.response, bytes.NewReader(x.fallback.text))
	return nil
}

// delayUnlessUntried returns the delay before the next attempt: none if the next attempt can
// go to a deployment that was not tried yet.
func (x *exchange) delayUnlessUntried(d time.Duration) time.Duration {
	if x.untried() {
		return 0
	}
	return d
}

// untried reports whether a deployment is left that was not tried yet.
func (x *exchange) untried() bool {
	return len(x.upstream.deployments) > 1 && len(x.tried) < len(x.upstream.deployments)
}

// concernsOneAccount reports whether a call was refused for a reason that may not hold for
// another account.
func concernsOneAccount(status int, cause llm.Cause) bool {
	return cause == llm.SpendCap || cause == llm.DayLimited || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// mayRetry reports whether the call may be sent again after a delay: retries are left, and
// the client still waits then.
func (x *exchange) mayRetry(delay time.Duration) bool {
	return x.Retries < x.upstream.Retries && x.ctx.Err() == nil && time.Since(x.Time)+delay < x.clientTimeout(x.upstream.Timeout)
}

// send sends the request to a deployment, with this body.
func (x *exchange) send(d *deployment, body io.ReadCloser, length int64) (*http.Response, error) {
	x.sent = false // an earlier attempt may have set it
	u := x.address(d)
	h := x.r.Header
	if _, own := d.transport.(*wire.Transport); !own || x.upstream.Retries > 0 {
		h = maps.Clone(h) // another attempt starts with the original, and net/http reads headers even after its answer
	}
	deleteConnectionFields(h)
	deleteFields(h, notForwarded)
	delete(h, x.cfg.Users.Header)
	x.classify(h)
	x.authorize(h, d, u)
	ctx, mayHaveGot := traceSent(x.ctx, d.transport, x.cfg.Server.ReadOn)
	out := (&http.Request{
		GetBody: replay(body),
		Method:  x.r.Method, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: length,
	}).WithContext(ctx) // in one expression, so that only this copy is on the heap
	if !d.receives(out) {
		body.Close()
		return nil, errWrongTarget
	}
	if err := x.sign(d, out, body); err != nil {
		body.Close()
		return nil, err
	}
	began := time.Now()
	response, err := d.transport.RoundTrip(out)
	x.Upstream = time.Since(began)
	x.sent = err == nil || mayHaveGot(err)
	if err == nil {
		x.hider.redactHeader(response.Header)
		x.replaceLocations(d, u, response.Header)
		x.RequestID = requestID(response.Header)
		response.Request = nil // lets go of the body
	}
	return response, err
}

// replay returns a GetBody for net/http, which sends the body again if the server has closed
// the connection. It is nil for a body that cannot be read twice.
func replay(body io.ReadCloser) func() (io.ReadCloser, error) {
	pieces, ok := body.(*wire.Pieces)
	if !ok {
		return nil
	}
	whole := slices.Clone(*pieces)
	return func() (io.ReadCloser, error) {
		copied := slices.Clone(whole)
		return &copied, nil
	}
}

// traceSent returns a context for a request, and a function that reports whether the server
// may have got any of the request although it failed. The transport of package wire says so
// in its errors; net/http reports when it writes. The transport of package wire also reads on for
// some time after the context has ended; for net/http, the context that is returned ends later.
func traceSent(ctx context.Context, transport http.RoundTripper, readOn time.Duration) (context.Context, func(error) bool) {
	if _, own := transport.(*wire.Transport); own {
		return ctx, sentByWire
	}
	wrote := new(atomic.Bool)
	trace := &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}
	return httptrace.WithClientTrace(lingering(ctx, readOn), trace), func(error) bool { return wrote.Load() }
}

// lingering returns a context that ends some time after another one.
func lingering(ctx context.Context, linger time.Duration) context.Context {
	if linger == 0 {
		return ctx
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })
	return longer
}

func sentByWire(err error) bool {
	fault := new(wire.Error)
	return !errors.As(err, &fault) || fault.Sent
}

// retryable reports whether a failed call may be sent again, by the rules of the provider's
// SDKs.
func retryable(r *http.Response, cause llm.Cause) bool {
	switch r.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch {
	case cause == llm.SpendCap, cause == llm.DayLimited:
		return false
	case r.StatusCode == http.StatusRequestTimeout, r.StatusCode == http.StatusConflict, r.StatusCode == http.StatusTooManyRequests:
		return true
	}
	return r.StatusCode >= http.StatusInternalServerError
}

// retryDelay returns how long to wait before the call is sent again. There is no delay if the
// model is paused: the call waits for the end of the pause in line.
func retryDelay(r *http.Response, said llm.Limits, retries int) time.Duration {
	if said.Pause > 0 {
		return 0
	}
	if seconds, err := strconv.ParseFloat(r.Header.Get("Retry-After"), 64); err == nil && seconds >= 0 && seconds < maxRetryAfter.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	}
	return backoff(retries)
}

const (
	minBackoff    = 500 * time.Millisecond
	maxBackoff    = 8 * time.Second
	maxRetryAfter = time.Hour // a longer Retry-After of a provider is ignored
)

func backoff(retries int) time.Duration { return min(minBackoff<<min(retries, 10), maxBackoff) }
