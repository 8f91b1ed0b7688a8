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

// over is that a call is not to be tried again.
const over time.Duration = -1

// attempt sends the call to a deployment, and relays the answer. Where it is to be tried
// again instead, it returns after how long.
func (x *exchange) attempt(d *deployment) (rest time.Duration, no *refusal) {
	d.active.Add(1)
	defer d.active.Add(-1)
	if !x.signed {
		for _, name := range ofPart {
			delete(x.r.Header, name)
		}
	}
	body, veiled := x.askUsage(d)
	response, err := x.send(d, bodyOf(body), body.Len())
	if err == nil && veiled && refusesUsage(response) {
		response.Body.Close()
		veiled = false
		response, err = x.sendUnasked(d, x.body)
	}
	if err != nil {
		return x.unanswered(d, err)
	}
	defer response.Body.Close()
	d.heard(response.StatusCode, x.call.Request.Model)
	if s := response.StatusCode; !x.shared && (s/100 == 2 || s == http.StatusTooManyRequests) {
		x.upstream.accounts.see(x.secrets())
	}
	if response.StatusCode/100 != 2 {
		return x.refused(response), nil
	}
	x.release()
	x.call.Hear(x.ctx, response.StatusCode, response.Header, nil)
	x.relay(response, veiled)
	return over, nil
}

// unanswered settles a call that has got no answer.
func (x *exchange) unanswered(d *deployment, err error) (rest time.Duration, no *refusal) {
	x.call.Unanswered(x.sent)
	if x.ctx.Err() == nil {
		d.failed()
	}
	if rest := x.restAfter(backoff(x.Retries)); !x.sent && x.mayRetry(rest) {
		return rest, nil
	}
	return over, x.unreached(err)
}

// refused settles a call that the provider has answered with an error, and hands that
// on, unless it is to be tried again.
func (x *exchange) refused(response *http.Response) (rest time.Duration) {
	var text []byte
	var err error
	if x.call.ReadsError(response.StatusCode) || x.Retries < x.upstream.Retries {
		text, err = io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
	}
	said := x.call.Failed(context.WithoutCancel(x.ctx), response.StatusCode, response.Header, text)
	x.throttled = said.Cause != ""
	retry := retryable(response, said.Cause) || x.untried() && ofOneAccount(response.StatusCode, said.Cause)
	if rest := x.restAfter(restOf(response, said, x.Retries)); retry && err == nil && len(text) < call.MaxErrorBody && x.mayRetry(rest) {
		x.kept = &kept{response, text, x.shared, x.hides, x.throttled}
		return rest
	}
	x.hand(response, io.MultiReader(bytes.NewReader(text), response.Body))
	return over
}

// kept is an answer that the client gets if no other attempt gets one.
type kept struct {
	response  *http.Response
	text      []byte // its body
	shared    bool   // see [exchange]
	hides     *hider
	throttled bool
}

// orKept hands on the answer that was kept, if there is one, in place of a refusal.
func (x *exchange) orKept(no *refusal) *refusal {
	if x.kept == nil || no.outcome == Left {
		return no
	}
	x.Limit, x.Error = "", ""
	x.shared, x.hides, x.throttled = x.kept.shared, x.kept.hides, x.kept.throttled
	x.hand(x.kept.response, bytes.NewReader(x.kept.text))
	return nil
}

// restAfter returns how long to wait before the next attempt: not at all if there is a
// deployment that was not tried.
func (x *exchange) restAfter(d time.Duration) time.Duration {
	if x.untried() {
		return 0
	}
	return d
}

// untried reports whether there is a deployment that was not tried.
func (x *exchange) untried() bool {
	return len(x.upstream.deployments) > 1 && len(x.tried) < len(x.upstream.deployments)
}

// ofOneAccount reports whether a call was refused for a reason that another account need
// not have.
func ofOneAccount(status int, cause llm.Cause) bool {
	return cause == llm.SpendCap || cause == llm.DayLimited || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// mayRetry reports whether the call may be tried again after a rest, which is to end
// while the client waits.
func (x *exchange) mayRetry(rest time.Duration) bool {
	return x.Retries < x.upstream.Retries && x.ctx.Err() == nil && time.Since(x.Time)+rest < x.clientWaits(x.upstream.Timeout)
}

// send sends the request with a body to a deployment.
func (x *exchange) send(d *deployment, body io.ReadCloser, length int64) (*http.Response, error) {
	x.sent = false // an attempt before it may have been
	u := x.at(d)
	h := x.r.Header
	if _, own := d.transport.(*wire.Transport); !own || x.upstream.Retries > 0 {
		h = maps.Clone(h) // which another attempt begins with, or a transport still reads
	}
	if x.has&kindHop != 0 {
		deleteHops(h)
	}
	if x.has&kindOurs != 0 {
		drop(h, kindOurs)
	}
	x.authorize(h, d, u)
	ctx, sent := noted(x.ctx, d.transport)
	out := (&http.Request{
		GetBody: again(body),
		Method:  x.r.Method, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: length,
	}).WithContext(ctx) // at once, so that there is one request in memory
	if !d.leads(out) {
		body.Close()
		return nil, errAstray
	}
	if err := x.sign(d, out, body); err != nil {
		body.Close()
		return nil, err
	}
	began := time.Now()
	response, err := d.transport.RoundTrip(out)
	x.Upstream = time.Since(began)
	x.sent = err == nil || sent(err)
	if err == nil {
		x.hides.header(response.Header)
		x.RequestID = requestID(response.Header)
		response.Request = nil // which has the body
	}
	return response, err
}

// again returns how net/http sends a body again on another connection, where the first
// was closed; nil for one that it cannot.
func again(body io.ReadCloser) func() (io.ReadCloser, error) {
	switch body := body.(type) {
	case *wire.Bytes:
		whole := *body
		return func() (io.ReadCloser, error) {
			copied := whole
			return &copied, nil
		}
	case *wire.Pieces:
		whole := slices.Clone(*body)
		return func() (io.ReadCloser, error) {
			copied := slices.Clone(whole)
			return &copied, nil
		}
	}
	return nil
}

// noted returns a context for a transport, and whether any of a request that has failed
// may have reached the server: our own says so, and net/http when it writes.
func noted(ctx context.Context, transport http.RoundTripper) (context.Context, func(error) bool) {
	if _, own := transport.(*wire.Transport); own {
		return ctx, sentByWire
	}
	wrote := new(atomic.Bool)
	trace := &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}
	return httptrace.WithClientTrace(ctx, trace), func(error) bool { return wrote.Load() }
}

func sentByWire(err error) bool {
	fault := new(wire.Error)
	return !errors.As(err, &fault) || fault.Sent
}

// retryable reports whether a call that has failed may be tried again, by what its
// provider says: as its SDKs do.
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

// restOf returns how long to wait before a call is tried again. For a model that is
// paused it waits in line.
func restOf(r *http.Response, said llm.Limits, retries int) time.Duration {
	if said.Pause > 0 {
		return 0
	}
	if seconds, err := strconv.ParseFloat(r.Header.Get("Retry-After"), 64); err == nil && seconds >= 0 && seconds < mostRest.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	}
	return backoff(retries)
}

const (
	firstRest = 500 * time.Millisecond
	lastRest  = 8 * time.Second
	mostRest  = time.Hour // that a provider is believed
)

func backoff(retries int) time.Duration { return min(firstRest<<min(retries, 10), lastRest) }
