package httplimit

import (
	"context"
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
	if limiter == nil {
		panic("ratelimit: Middleware needs a limiter: it is nil")
	}
	s := newSettings(options)
	if s.observe != nil {
		panic("ratelimit: Middleware takes no Observe: the limiter of projects has an observer")
	}
	s.gate.Limiter = limiter
	if s.identify == nil {
		s.identify = fromHeader
	}
	return s.wrap
}

func newSettings(options []Option) *settings {
	s := &settings{}
	for _, o := range options {
		o(s)
	}
	return s
}

func (s *settings) wrap(next http.Handler) http.Handler { return &limited{s, next} }

// limited is a handler that checks the limits before the next one.
type limited struct {
	*settings
	next http.Handler
}

// ServeHTTP is [http.Handler]'s.
func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.skip != nil && l.skip(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	var result admit.Result
	l.ask(r, &result)
	if !l.gate.Shadow {
		if result.Answer != admit.Pass {
			l.refuse(w, r, &result)
			return
		}
		l.policies.SetHeaders(w.Header(), &result)
	}
	if result.Reservation != nil {
		defer result.Reservation.Commit(-1, -1) // does nothing if the handler has ended it
		r = r.WithContext(admit.WithReservation(r.Context(), result.Reservation))
	}
	l.next.ServeHTTP(w, r)
}

// ask asks the limiter about a request.
func (s *settings) ask(r *http.Request, result *admit.Result) {
	if s.plain != nil {
		s.plain.Ask(r.Context(), r, result)
		return
	}
	id, err := s.identify(r)
	if err != nil {
		s.gate.Refuse(r.Context(), id, err, result)
		return
	}
	call := project.Call{Project: id}
	if s.cost != nil {
		if call.Requests, call.Estimated, err = s.cost(r); err != nil {
			s.gate.Refuse(r.Context(), id, err, result)
			return
		}
	}
	s.gate.Ask(r.Context(), call, result)
}

// ReservationFrom returns the reservation of the request with this context, or nil if the
// request was charged no tokens: see [Cost]. All methods of a nil Reservation do nothing.
func ReservationFrom(ctx context.Context) *project.Reservation { return admit.ReservationFrom(ctx) }
