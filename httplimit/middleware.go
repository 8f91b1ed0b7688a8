package httplimit

import (
	"context"
	"errors"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Middleware returns a function that wraps a handler: the handler gets only the requests that
// the limits of their projects let pass. The headers with the limits are set before the handler
// runs, and its ResponseWriter is the server's own. All handlers that use one limiter share its
// limits.
//
// Middleware panics if the limiter is nil, and an invalid option panics when it is made, so
// that such mistakes show when the program starts.
func Middleware(limiter *project.Limiter, options ...Option) func(http.Handler) http.Handler {
	s := newSettings(options)
	s.UseProjects(limiter, fromHeader)
	s.Guess = tokensOf
	return s.wrap
}

// errNoLength is the error of a body that is sent in chunks, or in frames of HTTP/2, without its length.
var errNoLength = errors.New("ratelimit: the body has no Content-Length: the project's tokens are limited, and are charged by it")

// tokensOf returns how many tokens the body of a request may have: one for four bytes, and one at least.
// A body without a length could have any number of them.
func tokensOf(r *http.Request) (int, error) {
	n := r.ContentLength
	if n < 0 {
		return 0, errNoLength
	}
	return int(max(1, n/4+min(n%4, 1))), nil
}

func (s *settings) wrap(next http.Handler) http.Handler { return &limited{s, next} }

// limited is a handler that checks the limits before the next one.
type limited struct {
	*settings
	next http.Handler
}

// ServeHTTP implements [http.Handler].
func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.Skip != nil && l.Skip(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	var result admit.Result
	l.Ask(r.Context(), r, &result)
	if !l.Shadow {
		if result.Answer != admit.Pass {
			l.refuse(w, r, &result)
			return
		}
		l.Policies.SetHeaders(w.Header(), &result)
	}
	if result.Reservation != nil {
		defer result.Reservation.Commit(-1, -1) // does nothing if the handler has ended it
		r = r.WithContext(admit.WithReservation(r.Context(), result.Reservation))
	}
	l.next.ServeHTTP(w, r)
}

// ReservationFrom returns the reservation of the request with this context, or nil if the request was charged no
// tokens: see [Cost]. A handler commits what was really used. All methods of a nil Reservation do nothing.
func ReservationFrom(ctx context.Context) *project.Reservation { return admit.ReservationFrom(ctx) }
