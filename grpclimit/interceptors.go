package grpclimit

import (
	"context"

	"google.golang.org/grpc"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/project"
)

// UnaryServerInterceptor returns an interceptor that lets only the calls pass that the limits
// of their projects allow.
//
// It panics if the limiter is nil, and an invalid option panics when it is made, so that such
// mistakes show when the program starts.
func UnaryServerInterceptor(limiter *project.Limiter, options ...Option) grpc.UnaryServerInterceptor {
	return newSettings(limiter, options).unary()
}

func (s *settings) unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		reservation, err := s.admit(ctx, info.FullMethod, request)
		if err != nil {
			return nil, err
		}
		if reservation != nil {
			defer reservation.Commit(-1, -1) // does nothing if the handler has ended it
			ctx = admit.WithReservation(ctx, reservation)
		}
		return handler(ctx, request)
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams. A stream is charged once,
// when it is opened.
func StreamServerInterceptor(limiter *project.Limiter, options ...Option) grpc.StreamServerInterceptor {
	return newSettings(limiter, options).stream()
}

func (s *settings) stream() grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := stream.Context()
		reservation, err := s.admit(ctx, info.FullMethod, nil)
		if err != nil {
			return err
		}
		if reservation != nil {
			defer reservation.Commit(-1, -1) // does nothing if the handler has ended it
			stream = &reserved{stream, admit.WithReservation(ctx, reservation)}
		}
		return handler(server, stream)
	}
}

// reserved is a stream with a reservation in its context.
type reserved struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is [grpc.ServerStream]'s.
func (r *reserved) Context() context.Context { return r.ctx }

// admit returns the reservation of a call that passes, which may be nil, or the error of one
// that does not.
func (s *settings) admit(ctx context.Context, method string, request any) (*project.Reservation, error) {
	if s.skip != nil && s.skip(ctx, method) {
		return nil, nil
	}
	var result admit.Result
	id := s.ask(ctx, method, request, &result)
	if result.Answer != admit.Pass && !s.gate.Shadow {
		return nil, refusal(ctx, id, &result)
	}
	return result.Reservation, nil
}

// ask asks the limiter about a call, and returns the call's project, if it has one.
func (s *settings) ask(ctx context.Context, method string, request any, result *admit.Result) (id string) {
	if s.plain != nil {
		s.plain.Ask(ctx, RPC{ctx, method, request}, result)
		return ""
	}
	id, err := s.identify(ctx)
	if err != nil {
		s.gate.Refuse(ctx, id, err, result)
		return ""
	}
	call := project.Call{Project: id}
	if s.cost != nil {
		if call.Requests, call.Estimated, err = s.cost(ctx, method, request); err != nil {
			s.gate.Refuse(ctx, id, err, result)
			return id
		}
	}
	s.gate.Ask(ctx, call, result)
	return id
}

// ReservationFrom returns the reservation of the call with this context, or nil if the call was
// charged no tokens: see [Cost]. All methods of a nil Reservation do nothing.
func ReservationFrom(ctx context.Context) *project.Reservation { return admit.ReservationFrom(ctx) }
