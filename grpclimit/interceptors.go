package grpclimit

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/project"
)

// UnaryServerInterceptor returns an interceptor that lets only the calls pass that the limits
// of their projects allow.
//
// It panics if the limiter is nil, and an invalid option panics when it is made, so that such
// mistakes show when the program starts.
func UnaryServerInterceptor(limiter *project.Limiter, options ...Option) grpc.UnaryServerInterceptor {
	return projectSettings(limiter, options).unary()
}

func projectSettings(limiter *project.Limiter, options []Option) *settings {
	s := newSettings(options)
	s.UseProjects(limiter, fromMetadata)
	s.Guess = tokensOf
	return s
}

// tokensOf returns how many tokens the message of a unary call may have: one for four bytes, and one at
// least. A stream has no message yet.
func tokensOf(rpc RPC) (int, error) {
	message, ok := rpc.Request.(proto.Message)
	if !ok {
		return 1, nil
	}
	return max(1, (proto.Size(message)+3)/4), nil
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
	return projectSettings(limiter, options).stream()
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

// Context implements [grpc.ServerStream].
func (r *reserved) Context() context.Context { return r.ctx }

// admit asks the limiter about a call. If the call passes, it returns the call's reservation, which
// may be nil; otherwise it returns the error for the client.
func (s *settings) admit(ctx context.Context, method string, request any) (*project.Reservation, error) {
	rpc := RPC{ctx, method, request}
	if s.Skip != nil && s.Skip(rpc) {
		return nil, nil
	}
	var result admit.Result
	id := s.Ask(ctx, rpc, &result)
	if result.Answer != admit.Pass && !s.Shadow {
		return nil, refusal(ctx, id, &result)
	}
	return result.Reservation, nil
}

// ReservationFrom returns the reservation of the call with this context, or nil if the call was
// charged no tokens: see [Cost]. All methods of a nil Reservation do nothing.
func ReservationFrom(ctx context.Context) *project.Reservation { return admit.ReservationFrom(ctx) }
