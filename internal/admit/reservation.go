package admit

import (
	"context"

	"dappco.re/go/core/go-ratelimit/project"
)

type reservationKey struct{}

// WithReservation returns a context that holds a call's reservation.
func WithReservation(ctx context.Context, r *project.Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, r)
}

// ReservationFrom returns the reservation that the context holds, or nil.
func ReservationFrom(ctx context.Context) *project.Reservation {
	r, _ := ctx.Value(reservationKey{}).(*project.Reservation)
	return r
}
