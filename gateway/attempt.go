package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/wire"
	"dappco.re/go/core/go-ratelimit/llm"
)

// over is that a call is not to be tried again.
const over time.Duration = -1

// attempt sends the call to a deployment, and relays the answer. Where it is to be tried
// again instead, it returns after how long, which is no longer than wait.
func (x *exchange) attempt(d *deployment, wait time.Duration) (rest time.Duration, no *refusal) {
	body, veiled := x.body, false
	if asking, ok := x.call.Asks.AskUsage(x.body); ok {
		body, veiled = asking, true
	}
	delete(x.r.Header, "Accept-Encoding") // what is compressed could not be read
	response, err := x.send(d, (*wire.Bytes)(&body), int64(len(body)))
	if err != nil {
		x.call.Unanswered(x.sent)
		if rest := backoff(x.Retries); !x.sent && x.mayRetry(rest, wait) {
			return rest, nil
		}
		return over, x.unreached(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 2 {
		x.body = nil
		x.call.Hear(x.ctx, response.StatusCode, response.Header, nil)
		x.relay(response, veiled)
		return over, nil
	}
	var text []byte
	if call.Telling(response.StatusCode) {
		text, _ = io.ReadAll(io.LimitReader(response.Body, call.MostOfError))
	}
	said := x.call.Failed(context.WithoutCancel(x.ctx), response.StatusCode, response.Header, text)
	if rest := restOf(response, said, x.Retries); retryable(response, said.Cause) && x.mayRetry(rest, wait) {
		return rest, nil
	}
	x.hand(response, io.MultiReader(bytes.NewReader(text), response.Body))
	return over, nil
}

// mayRetry reports whether the call may be tried again after a rest.
func (x *exchange) mayRetry(rest, wait time.Duration) bool {
	return x.Retries < x.upstream.Retries && rest <= wait && x.ctx.Err() == nil
}

// send sends the request with a body to a deployment.
func (x *exchange) send(d *deployment, body io.ReadCloser, length int64) (*http.Response, error) {
	u := x.at(d)
	h := x.r.Header
	deleteHops(h)
	for _, name := range ours {
		delete(h, name)
	}
	x.authorize(h, d, u)
	out := (&http.Request{
		Method: x.r.Method, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: length,
	}).WithContext(x.ctx)
	began := time.Now()
	response, err := d.transport.RoundTrip(out)
	x.Upstream = time.Since(began)
	x.sent = err == nil || wasSent(err)
	return response, err
}

// wasSent reports whether any of a request that has failed may have reached the
// server.
func wasSent(err error) bool {
	if fault := new(wire.Error); errors.As(err, &fault) {
		return fault.Sent
	}
	dial := new(net.OpError)
	return !errors.As(err, &dial) || dial.Op != "dial"
}

// unreached is the refusal of a call whose provider has not answered.
func (x *exchange) unreached(err error) *refusal {
	if x.ctx.Err() != nil {
		return x.leave()
	}
	x.Error = err.Error()
	status, what := http.StatusBadGateway, "could not be reached, or has not answered"
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		status, what = http.StatusGatewayTimeout, "has not answered in time"
	}
	return &refusal{llm.Refusal{Status: status, Message: fmt.Sprintf("the provider %q %s", x.Provider, what), Retry: !x.sent}, Broken}
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

// restOf returns how long to wait before a call is tried again.
func restOf(r *http.Response, said llm.Limits, retries int) time.Duration {
	if said.Pause > 0 {
		return said.Pause
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
