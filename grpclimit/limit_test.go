package grpclimit

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// byMethod is the key of a call in these tests.
func byMethod(rpc RPC) string { return rpc.Method }

// plainServer returns a server of gRPC's own health service behind a plain limiter.
func plainServer(limiter Limiter, options ...Option) *grpc.Server {
	server := grpc.NewServer(
		grpc.UnaryInterceptor(LimitUnary(limiter, options...)),
		grpc.StreamInterceptor(LimitStream(limiter, options...)),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	return server
}

func TestLimitTooMany(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			limiter := limit.NewLimiter(byMethod, limit.PerHour(1), limit.PerDay(100))
			client := connect(t, plainServer(limiter))
			if err := k.call(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			err := k.call(t.Context(), client)
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), `the limit "1/h" is reached`) {
				t.Fatal(err)
			}
			retry, failure := details(t, err)
			if v := failure.GetViolations(); len(v) != 1 || v[0].GetQuotaId() != "1/h" || v[0].GetQuotaValue() != 1 || v[0].GetSubject() != "" {
				t.Errorf("%v", v)
			}
			if delay := retry.GetRetryDelay().AsDuration(); delay <= 0 || delay > time.Hour {
				t.Errorf("%v", delay)
			}
		})
	}
}

// The cost of a call may depend on its message. A call that can never pass gets no RetryInfo.
func TestLimitCosts(t *testing.T) {
	length := func(rpc RPC) int64 {
		request, _ := rpc.Request.(*healthpb.HealthCheckRequest) // nil for a stream: its message comes later
		return int64(len(request.GetService()))
	}
	for _, options := range [][]Option{nil, {Wait(time.Nanosecond)}} {
		bytes := limit.NewLimiter(byMethod, limit.PerHour(10)).WithCost(length)
		calls := limit.NewLimiter(byMethod, limit.PerHour(100))
		client := connect(t, plainServer(limit.Combine(calls, bytes), options...))
		for _, step := range []struct {
			bytes int
			code  codes.Code
			later bool
		}{
			{11, codes.ResourceExhausted, false},
			{6, codes.NotFound, false}, // the call passes, and the handler has no such service
			{6, codes.ResourceExhausted, true},
			{4, codes.NotFound, false},
		} {
			_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("x", step.bytes)})
			retry, _ := details(t, err)
			if status.Code(err) != step.code || (retry != nil) != step.later {
				t.Errorf("%d bytes: %v, %v", step.bytes, err, retry)
			}
		}
		if err := watch(t.Context(), client); err != nil {
			t.Error(err)
		}
		if left := calls.Peek(RPC{Method: healthpb.Health_Check_FullMethodName}).Remaining; left != 98 {
			t.Errorf("%d calls left", left)
		}
	}
}

// inMemoryPlain returns a function that calls a handler behind a plain limiter.
func inMemoryPlain(limiter Limiter, options ...Option) func(context.Context) error {
	intercept := LimitUnary(limiter, options...)
	return func(ctx context.Context) error {
		_, err := intercept(ctx, nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
}

// Observe is called once for each call, and with Shadow every call passes.
func TestLimitShadow(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var mu sync.Mutex
			var observed []bool
			client := connect(t, plainServer(limit.NewLimiter(byMethod, limit.PerDay(2)), Shadow(), Wait(24*time.Hour),
				Observe(func(rpc RPC, d limit.Decision) {
					mu.Lock()
					defer mu.Unlock()
					observed = append(observed, d.Allowed)
					if d.Limit != limit.PerDay(2) || !strings.HasPrefix(rpc.Method, "/grpc.health.") || rpc.Context == nil {
						t.Errorf("%+v: %+v", rpc, d)
					}
				})))
			for range 4 {
				if err := k.call(t.Context(), client); err != nil {
					t.Error(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(observed, []bool{true, true, false, false}) {
				t.Errorf("%v", observed)
			}
		})
	}
}

func TestLimitSkip(t *testing.T) {
	limiter := limit.NewLimiter(func(RPC) int { return 0 }, limit.PerDay(1))
	client := connect(t, plainServer(limiter, Skip(func(_ context.Context, method string) bool {
		return method == healthpb.Health_Check_FullMethodName
	})))
	for range 3 {
		if err := check(t.Context(), client); err != nil {
			t.Error(err)
		}
	}
	if err := watch(t.Context(), client); err != nil {
		t.Error(err)
	}
	if err := watch(t.Context(), client); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

// address is the address of a peer.
type address string

func (a address) Network() string { return "test" }
func (a address) String() string  { return string(a) }

func TestClientPrefix(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name, peer string
		trusted    []netip.Prefix
		forwarded  []string
		want       string // empty: the client is unknown
	}{
		{"the peer", "203.0.113.7:4711", nil, nil, "203.0.113.7/32"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:80", nil, nil, "2001:db8:1:2::/64"},
		{"not believed", "10.0.0.1:80", nil, []string{"198.51.100.1"}, "10.0.0.1/32"},
		{"not a proxy", "203.0.113.7:4711", proxies, []string{"198.51.100.1"}, "203.0.113.7/32"},
		{"forwarded", "10.0.0.1:80", proxies, []string{"198.51.100.1, 203.0.113.7, 10.2.2.2"}, "203.0.113.7/32"},
		{"forwarded in two lines", "10.0.0.1:80", proxies, []string{"203.0.113.7", "10.2.2.2"}, "203.0.113.7/32"},
		{"nothing forwarded", "10.0.0.1:80", proxies, nil, "10.0.0.1/32"},
		{"garbled by the proxy", "10.0.0.1:80", proxies, []string{"unknown"}, ""},
		{"a socket", "@", proxies, []string{"203.0.113.7"}, ""},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: address(c.peer)})
		ctx = metadata.NewIncomingContext(ctx, metadata.MD{"x-forwarded-for": c.forwarded})
		want := netip.Prefix{}
		if c.want != "" {
			want = netip.MustParsePrefix(c.want)
		}
		if got := ClientPrefix(c.trusted...)(RPC{Context: ctx}); got != want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for _, ctx := range []context.Context{t.Context(), peer.NewContext(t.Context(), &peer.Peer{})} {
		if got := ClientPrefix()(RPC{Context: ctx}); got.IsValid() {
			t.Errorf("no peer: %v", got)
		}
	}
}

func TestLimitPanicsOnInvalidOptions(t *testing.T) {
	limiter := limit.NewLimiter(byMethod, limit.PerDay(1))
	testkit.Panics(t, map[string]func(){
		"unary":    func() { LimitUnary(nil) },
		"stream":   func() { LimitStream(nil) },
		"Identify": func() { LimitUnary(limiter, Identify(func(context.Context) (string, error) { return "", nil })) },
		"Cost": func() {
			LimitStream(limiter, Cost(func(context.Context, string, any) (int, int, error) { return 1, 0, nil }))
		},
		"Observe":      func() { Observe(nil) },
		"projects":     func() { UnaryServerInterceptor(newLimiter(t, project.Limit{}), Observe(func(RPC, limit.Decision) {})) },
		"ClientPrefix": func() { ClientPrefix(netip.Prefix{}) },
	})
}
