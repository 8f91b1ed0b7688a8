package httplimit

import (
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/argument"
)

// Option changes what [Middleware] or [Limit] does.
type Option func(*settings)

type settings struct {
	admit.Door[*http.Request]
	answer func(w http.ResponseWriter, r *http.Request, status int, reason string)
}

func newSettings(options []Option) *settings {
	s := &settings{}
	for _, o := range options {
		o(s)
	}
	return s
}

// Identify lets identify return the name of a request's project, in place of the header
// X-Project-ID. A name has 1 to 128 characters of visible ASCII. After an error, the client
// gets a 400 with the error's text. See [ClientIP].
func Identify(identify func(*http.Request) (string, error)) Option {
	argument.Function("Identify", identify != nil)
	return func(s *settings) { s.Identify = identify }
}

// Cost charges what cost returns for a request. Zero requests count as one. Without Cost, it is one
// request; and if limits on tokens govern the project, one token for each four bytes of the body,
// by its Content-Length, and one at least. A body without a Content-Length could have any length,
// so its client gets a 411 then. No dollars are charged in either case. After an error, the client
// gets a 400 with the error's text, and also for a cost that is negative or absurdly large.
//
// Tokens are an estimate of prompt and output together. The handler gets the reservation from
// [ReservationFrom], and may commit what was really used. If it does not, the estimate stays
// charged.
func Cost(cost func(*http.Request) (requests, tokens int, err error)) Option {
	argument.Function("Cost", cost != nil)
	return func(s *settings) { s.Cost = cost }
}

// Skip lets a request pass if skip returns true. The limiter is not asked about it, it is
// charged nothing, and its response has no headers with limits.
func Skip(skip func(*http.Request) bool) Option {
	argument.Function("Skip", skip != nil)
	return func(s *settings) { s.Skip = skip }
}

// Answer lets answer write the response to a request that is denied or refused, in place of an
// application/problem+json. The headers with the limits, Retry-After and Cache-Control are
// already set. status is the status to send, and reason says why, for the client to read.
// answer is not called for a client that has left.
func Answer(answer func(w http.ResponseWriter, r *http.Request, status int, reason string)) Option {
	argument.Function("Answer", answer != nil)
	return func(s *settings) { s.answer = answer }
}

// Shadow lets every request pass, even if it is denied or invalid or the store is lost. The
// limiter counts requests, and its observers get what would have become of them. Requests do
// not wait, and responses have no headers with limits.
func Shadow() Option {
	return func(s *settings) { s.Shadow = true }
}

// Wait lets a request that a limit denies wait for its turn, for at most d. A request that
// cannot pass in time is denied at once. A client that leaves while its request waits is
// charged nothing. With zero, requests do not wait.
func Wait(d time.Duration) Option {
	argument.Duration("Wait", d)
	return func(s *settings) { s.Wait = d }
}
