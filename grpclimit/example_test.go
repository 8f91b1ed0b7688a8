package grpclimit_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/grpclimit"
	"dappco.re/go/core/go-ratelimit/project"
)

func ExampleUnaryServerInterceptor() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 2})
	defer limiter.Close()

	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter)),
		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(limiter)),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go server.Serve(listener)
	defer server.Stop()

	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer connection.Close()
	client := healthpb.NewHealthClient(connection)

	ctx := metadata.AppendToOutgoingContext(context.Background(), grpclimit.MetadataProjectID, "ann")
	for range 3 {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
}
