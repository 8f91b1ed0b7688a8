package httplimit

import (
	"fmt"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Option changes what [Middleware] or [Limit] does.
type Option func(*settings)

type settings struct {
	gate     admit.Gate
	identify func(*http.Request) (string, error)
	cost     func(*http.Request) (requests, tokens int, err error) // nil: one request
	skip     func(*http.Request) bool                              // nil: none
	answer   func(w http.ResponseWriter, r *http.Request, status int, reason string)
	policies admit.Policies

	// Of Limit:
	plain   *admit.PlainGate[*http.Request] // nil: of Middleware
	observe func(*http.Request, limit.Decision)
}

// Identify takes the name of a request's project from identify, in place of the
// header X-Project-ID. Its error is the text of a 400. A name is 1 to 128
// characters of visible ASCII. See [ClientIP].
func Identify(identify func(*http.Request) (string, error)) Option {
	if identify == nil {
		panic("ratelimit: Identify needs a function: it is nil")
	}
	return func(s *settings) { s.identify = identify }
}

// Cost charges what cost returns for a request, in place of one request and no
// tokens. Zero requests count as one. A cost that is negative or absurdly large
// is a 400, and so is an error, whose text the client gets.
//
// Tokens are an estimate, of prompt and output together. The handler finds the
// reservation with [ReservationFrom] and may commit what was really used; if it
// has not when it returns, or panics, what was reserved stands.
func Cost(cost func(*http.Request) (requests, tokens int, err error)) Option {
	if cost == nil {
		panic("ratelimit: Cost needs a function: it is nil")
	}
	return func(s *settings) { s.cost = cost }
}

// Skip lets requests pass for which skip returns true: nothing is asked of
// them, nothing charged, and nothing said of limits.
func Skip(skip func(*http.Request) bool) Option {
	if skip == nil {
		panic("ratelimit: Skip needs a function: it is nil")
	}
	return func(s *settings) { s.skip = skip }
}

// Answer lets answer write the response to a request that is denied or refused, in
// place of an application/problem+json. The fields that tell the client where it stands,
// Retry-After and Cache-Control are already set. status is what would have been
// sent, and reason says why, for the client to read. It is not called for a client
// that has gone.
func Answer(answer func(w http.ResponseWriter, r *http.Request, status int, reason string)) Option {
	if answer == nil {
		panic("ratelimit: Answer needs a function: it is nil")
	}
	return func(s *settings) { s.answer = answer }
}

// Shadow counts and tells the limiter's observers what would become of a
// request, but lets every request pass, whatever is wrong with it or with the
// store, and says nothing of limits to the client. It makes no request wait.
func Shadow() Option {
	return func(s *settings) { s.gate.Shadow = true }
}

// Wait lets a request wait in turn, for at most as long, where it would have
// been denied. One that cannot pass in time is denied at once. A client that
// goes away while it waits has taken nothing. Zero is not to wait.
func Wait(most time.Duration) Option {
	if most < 0 {
		panic(fmt.Sprintf("ratelimit: Wait(%v): it must not be negative", most))
	}
	return func(s *settings) { s.gate.Wait = most }
}
