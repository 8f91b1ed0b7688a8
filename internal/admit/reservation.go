package admit

import (
	"context"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

type reservationKey struct{}

// WithReservation returns a context that holds a call's reservation.
func WithReservation(ctx context.Context, r *ratelimit.Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, r)
}

// ReservationFrom returns the reservation that the context holds, or nil.
func ReservationFrom(ctx context.Context) *ratelimit.Reservation {
	r, _ := ctx.Value(reservationKey{}).(*ratelimit.Reservation)
	return r
}
