package grpclimit_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/grpclimit"
	"dappco.re/go/core/go-ratelimit/limit"
)

func ExampleLimitUnary() {
	perClient := limit.NewLimiter(grpclimit.ClientPrefix(), limit.PerMinute(100))
	perMethod := limit.NewLimiter(func(rpc grpclimit.RPC) string { return rpc.Method }, limit.PerMinute(2))
	both := limit.Combine(perClient, perMethod)

	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.LimitUnary(both)),
		grpc.StreamInterceptor(grpclimit.LimitStream(both)),
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

	for range 3 {
		_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println("Check:", status.Code(err))
	}
	_, err = client.List(context.Background(), &healthpb.HealthListRequest{})
	fmt.Println("List:", status.Code(err))
	// Output:
	// Check: OK
	// Check: OK
	// Check: ResourceExhausted
	// List: OK
}
