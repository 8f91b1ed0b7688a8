package httplimit

import (
	"context"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/argument"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Limiter is a limiter of requests for [Limit]: a *[limit.Limiter] with keys of any type, or a
// *[limit.Combined].
type Limiter interface {
	Spend(r *http.Request) limit.Decision
	Peek(r *http.Request) limit.Decision
	Wait(ctx context.Context, r *http.Request) error
}

// Limit is [Middleware] without projects: a handler gets only the requests that the limiter
// lets pass.
//
//	perClient := limit.NewLimiter(httplimit.ClientPrefix(), limit.PerSecond(10), limit.PerMinute(200))
//	http.ListenAndServe(addr, httplimit.Limit(perClient)(handler))
//
// The limiter's functions return the key, the limits and the cost of a request: see
// [limit.Limiter.WithCost]. They are called once for each request, and again for one that
// waits. The headers of a response have the limit that decided, with its text as name:
//
//	RateLimit-Policy: "10/s";q=10;w=1
//	RateLimit: "10/s";r=9;t=1
//
// The options are [Wait], [Shadow], [Skip], [Answer] and [Observe]. Limit panics if
// the limiter is nil, and with the options Identify and Cost, which are for projects.
func Limit(limiter Limiter, options ...Option) func(http.Handler) http.Handler {
	s := newSettings(options)
	s.UsePlain(limiter)
	return s.wrap
}

// Observe calls observe with the decision of [Limit] on each request: for metrics, for logs,
// and to see what [Shadow] would deny. The call is on the request's goroutine.
func Observe(observe func(r *http.Request, d limit.Decision)) Option {
	argument.Function("Observe", observe != nil)
	return func(s *settings) { s.Observe = observe }
}
