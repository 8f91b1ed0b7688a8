package grpclimit

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLimiter(t testing.TB, l project.Limit) *project.Limiter {
	t.Helper()
	return configured(t, project.Config{Default: &l})
}

func configured(t testing.TB, cfg project.Config) *project.Limiter {
	t.Helper()
	limiter, err := project.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limiter.Close() })
	return limiter
}

// start serves gRPC's own health service behind the limits, over a connection in memory.
func start(t *testing.T, limiter *project.Limiter, options ...Option) healthpb.HealthClient {
	t.Helper()
	server := grpc.NewServer(
		grpc.UnaryInterceptor(UnaryServerInterceptor(limiter, options...)),
		grpc.StreamInterceptor(StreamServerInterceptor(limiter, options...)),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	return connect(t, server)
}

func connect(t *testing.T, server *grpc.Server) healthpb.HealthClient {
	t.Helper()
	wire := bufconn.Listen(1 << 16)
	served := make(chan error)
	go func() { served <- server.Serve(wire) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	client, err := grpc.NewClient("passthrough:bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return healthpb.NewHealthClient(client)
}

// as returns the context of a call that names projects.
func as(ctx context.Context, projects ...string) context.Context {
	md := metadata.MD{}
	md.Append(MetadataProjectID, projects...)
	return metadata.NewOutgoingContext(ctx, md)
}

// kinds are the two kinds of calls: unary and streaming.
var kinds = []struct {
	name string
	call func(ctx context.Context, client healthpb.HealthClient) error
}{
	{"unary", check},
	{"stream", watch},
}

func check(ctx context.Context, client healthpb.HealthClient) error {
	_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// watch opens a stream, and reads its first message.
func watch(ctx context.Context, client healthpb.HealthClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// used returns how many requests of project p were charged to its first window.
func used(t *testing.T, limiter *project.Limiter) int64 {
	t.Helper()
	d, err := limiter.Peek(context.Background(), "p")
	if err != nil {
		t.Fatal(err)
	}
	first := d.Windows()[0]
	return first.Window.Count - first.Remaining
}

// details returns the details of an error.
func details(t *testing.T, err error) (retry *errdetails.RetryInfo, failure *errdetails.QuotaFailure) {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			failure = d
		default:
			t.Errorf("%T", d)
		}
	}
	return retry, failure
}

func violated(failure *errdetails.QuotaFailure) (names []string) {
	for _, v := range failure.GetViolations() {
		names = append(names, v.GetQuotaId())
	}
	return names
}

func TestTooMany(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{RequestsPerMinute: 2, RequestsPerHour: 2, RequestsPerDay: 100})
			client := start(t, limiter)
			for range 2 {
				if err := k.call(as(t.Context(), "p"), client); err != nil {
					t.Fatal(err)
				}
			}
			err := k.call(as(t.Context(), "p"), client)
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), `"requests_per_hour"`) {
				t.Fatal(err)
			}
			retry, failure := details(t, err)
			if !slices.Equal(violated(failure), []string{"requests_per_minute", "requests_per_hour"}) {
				t.Errorf("%v", failure)
			}
			v := failure.GetViolations()[0]
			if v.GetSubject() != "project:p" || v.GetQuotaMetric() != "requests" || v.GetQuotaValue() != 2 || v.GetDescription() == "" {
				t.Errorf("%v", v)
			}
			// Peek says when the call passes now, which is no later than the delay that it got.
			d, peekErr := limiter.Peek(t.Context(), "p")
			if peekErr != nil {
				t.Fatal(peekErr)
			}
			if delay := retry.GetRetryDelay().AsDuration(); delay < d.RetryAfter || delay > time.Hour || delay <= time.Minute {
				t.Errorf("%v, then %v", delay, d.RetryAfter)
			}
			if err := k.call(as(t.Context(), "q"), client); err != nil {
				t.Errorf("another project: %v", err)
			}
		})
	}
}

func TestNever(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerMinute: 100})
	cost := func(context.Context, string, any) (int, int, error) { return 1, 101, nil }
	for _, o := range [][]Option{{Cost(cost)}, {Cost(cost), Wait(time.Hour)}} {
		err := check(as(t.Context(), "p"), start(t, limiter, o...))
		retry, failure := details(t, err)
		if status.Code(err) != codes.ResourceExhausted || retry != nil || !slices.Equal(violated(failure), []string{"tokens_per_minute"}) {
			t.Errorf("%v: %v, %v", err, retry, failure)
		}
		if v := failure.GetViolations(); len(v) != 1 || v[0].GetQuotaMetric() != "tokens" {
			t.Errorf("%v", v)
		}
	}
	if n := used(t, limiter); n != 0 {
		t.Errorf("%d used", n)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		name     string
		projects []string
		code     codes.Code
		says     string
	}{
		{"none", nil, codes.InvalidArgument, "x-project-id is missing"},
		{"empty", []string{""}, codes.InvalidArgument, "128"},
		{"two", []string{"p", "q"}, codes.InvalidArgument, "more than once"},
		{"the same twice", []string{"p", "p"}, codes.OK, ""},
		{"a space", []string{"p q"}, codes.InvalidArgument, "ASCII"},
		{"too long", []string{strings.Repeat("p", 129)}, codes.InvalidArgument, "128"},
		{"long", []string{strings.Repeat("p", 100_000)}, codes.InvalidArgument, "128"},
	} {
		for _, k := range kinds {
			t.Run(c.name+"/"+k.name, func(t *testing.T) {
				limiter := newLimiter(t, project.Limit{RequestsPerDay: 10})
				err := k.call(as(t.Context(), c.projects...), start(t, limiter))
				if status.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
				if n := used(t, limiter); (n == 1) != (c.code == codes.OK) {
					t.Errorf("%d used", n)
				}
			})
		}
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		requests, tokens int
		err              error
		code             codes.Code
		used             int64
	}{
		{0, 0, nil, codes.OK, 1},
		{4, 0, nil, codes.OK, 4},
		{11, 0, nil, codes.ResourceExhausted, 0},
		{-1, 0, nil, codes.InvalidArgument, 0},
		{1, -1, nil, codes.InvalidArgument, 0},
		{1, 1 << 62, nil, codes.InvalidArgument, 0},
		{1, 0, errors.New("no model"), codes.InvalidArgument, 0},
	} {
		limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerDay: 100})
		client := start(t, limiter, Cost(func(_ context.Context, method string, request any) (int, int, error) {
			if method != healthpb.Health_Check_FullMethodName {
				t.Error(method)
			}
			if _, ok := request.(*healthpb.HealthCheckRequest); !ok {
				t.Errorf("%T", request)
			}
			return c.requests, c.tokens, c.err
		}))
		err := check(as(t.Context(), "p"), client)
		if status.Code(err) != c.code || used(t, limiter) != c.used {
			t.Errorf("%d, %d: %v, %d used", c.requests, c.tokens, err, used(t, limiter))
		}
	}
}

func TestIdentify(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10})
	var fault error
	client := start(t, limiter, Identify(func(context.Context) (string, error) { return "p", fault }))
	if err := check(t.Context(), client); err != nil || used(t, limiter) != 1 {
		t.Errorf("%v, %d used", err, used(t, limiter))
	}
	fault = errors.New("no such key")
	err := check(t.Context(), client)
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "no such key" || used(t, limiter) != 1 {
		t.Errorf("%v, %d used", err, used(t, limiter))
	}
}

func TestSkip(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10})
	client := start(t, limiter, Skip(func(_ context.Context, method string) bool { return method == healthpb.Health_Check_FullMethodName }))
	if err := check(t.Context(), client); err != nil {
		t.Error(err)
	}
	if err := watch(t.Context(), client); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if n := used(t, limiter); n != 0 {
		t.Errorf("%d used", n)
	}
}

func TestInvalidOptionsPanic(t *testing.T) {
	testkit.Panics(t, map[string]func(){
		"unary":    func() { UnaryServerInterceptor(nil) },
		"stream":   func() { StreamServerInterceptor(nil) },
		"Identify": func() { Identify(nil) },
		"Cost":     func() { Cost(nil) },
		"Skip":     func() { Skip(nil) },
		"Wait":     func() { Wait(-1) },
	})
}
