package grpclimit

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/project"
)

// frugal is a service that commits the tokens that a call has used.
type frugal struct {
	healthpb.UnimplementedHealthServer
	t *testing.T
}

func (f frugal) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	f.commit(ctx)
	return &healthpb.HealthCheckResponse{}, nil
}

func (f frugal) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	f.commit(stream.Context())
	return stream.Send(&healthpb.HealthCheckResponse{})
}

func (f frugal) commit(ctx context.Context) {
	reservation := ReservationFrom(ctx)
	if reservation == nil {
		f.t.Error("no reservation")
	}
	reservation.Commit(20, 10)
}

func TestReservation(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{TokensPerDay: 1000})
			cost := Cost(func(context.Context, string, any) (int, int, error) { return 1, 500, nil })
			server := grpc.NewServer(
				grpc.UnaryInterceptor(UnaryServerInterceptor(limiter, cost)),
				grpc.StreamInterceptor(StreamServerInterceptor(limiter, cost)),
			)
			healthpb.RegisterHealthServer(server, frugal{t: t})
			client := connect(t, server)
			for range 5 {
				if err := k.call(as(t.Context(), "p"), client); err != nil {
					t.Fatal(err)
				}
			}
			if n := used(t, limiter); n != 5*30 {
				t.Errorf("%d tokens used", n)
			}
		})
	}
}

// A call frees its concurrency slot when it ends, also if the handler commits nothing.
func TestSlots(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{MaxConcurrent: 1})
			cost := Cost(func(context.Context, string, any) (int, int, error) { return 1, 500, nil })
			client := start(t, limiter, cost, Wait(time.Minute)) // a stream that its client has just left may still have its slot
			for range 3 {
				if err := k.call(as(t.Context(), "p"), client); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Without a Cost, a message is charged by its size, so that a large one is not as cheap as a small one.
func TestLargeMessagesAreNotFree(t *testing.T) {
	limiter := newLimiter(t, project.Limit{TokensPerDay: 1000})
	client := start(t, limiter)
	for _, call := range []struct {
		bytes int
		used  int64
		want  codes.Code
	}{{0, 1, codes.OK}, {397, 101, codes.NotFound}, {4001, 101, codes.ResourceExhausted}, {1 << 20, 101, codes.ResourceExhausted}} {
		request := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", call.bytes)}
		if _, err := client.Check(as(t.Context(), "p"), request); status.Code(err) != call.want {
			t.Errorf("%d bytes: %v; want %v", call.bytes, err, call.want)
		}
		if n := used(t, limiter); n != call.used {
			t.Errorf("%d bytes: %d tokens are used; want %d", call.bytes, n, call.used)
		}
	}
}
