package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/argument"
	"dappco.re/go/core/go-ratelimit/limit"
)

// RPC is a call, as the functions of a plain limiter get it to find its key, its limits and its
// cost.
type RPC struct {
	Context context.Context
	Method  string // like "/package.Service/Method"
	Request any    // the message of a unary call; nil for a stream
}

// Limiter is a limiter of calls for [LimitUnary] and [LimitStream]: a *[limit.Limiter] with keys
// of any type, or a *[limit.Combined].
type Limiter interface {
	Spend(rpc RPC) limit.Decision
	Peek(rpc RPC) limit.Decision
	Wait(ctx context.Context, rpc RPC) error
}

// LimitUnary is [UnaryServerInterceptor] without projects: a handler gets only the calls that
// the limiter lets pass.
//
//	perClient := limit.NewLimiter(grpclimit.ClientPrefix(), limit.PerSecond(10), limit.PerMinute(200))
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.LimitUnary(perClient)),
//		grpc.StreamInterceptor(grpclimit.LimitStream(perClient)),
//	)
//
// The limiter's functions return the key, the limits and the cost of a call: see
// [limit.Limiter.WithCost]. They are called once for each call, and again for one that waits.
// The QuotaFailure of a denial names the limit that decided by its text, such as "10/s".
//
// The options are [Wait], [Shadow], [Skip] and [Observe]. LimitUnary panics if the limiter is
// nil, and with the options Identify and Cost, which are for projects.
func LimitUnary(limiter Limiter, options ...Option) grpc.UnaryServerInterceptor {
	return plainSettings(limiter, options).unary()
}

// LimitStream is [LimitUnary] for streams. A stream is charged once, when it is opened.
func LimitStream(limiter Limiter, options ...Option) grpc.StreamServerInterceptor {
	return plainSettings(limiter, options).stream()
}

func plainSettings(limiter Limiter, options []Option) *settings {
	s := newSettings(options)
	s.UsePlain(limiter)
	return s
}

// Observe calls observe with the decision of a plain limiter on each call: for metrics, for
// logs, and to see what [Shadow] would deny. The call is on the RPC's goroutine.
func Observe(observe func(rpc RPC, d limit.Decision)) Option {
	argument.Function("Observe", observe != nil)
	return func(s *settings) { s.Observe = observe }
}

// ClientPrefix returns a key function for a [limit.Limiter] of calls, which identifies clients
// by their address: by the /32 of IPv4, and by the /64 of IPv6, which one customer has.
//
// The address is the peer's. If the peer is a trusted proxy, it is the rightmost address of the
// metadata x-forwarded-for that is no trusted proxy. If all of them are, or the metadata is
// missing, it is the address that is farthest from the server. Only trusted proxies are
// believed, so a client cannot choose its identity. All calls of unknown clients, such as those
// over a Unix socket, share the zero prefix.
//
// ClientPrefix panics if a prefix is not valid.
func ClientPrefix(trusted ...netip.Prefix) func(RPC) netip.Prefix {
	proxies := admit.Trust(trusted)
	return func(rpc RPC) netip.Prefix {
		from, ok := peer.FromContext(rpc.Context)
		if !ok || from.Addr == nil {
			return netip.Prefix{}
		}
		var forwarded []string
		if len(proxies) > 0 {
			forwarded = metadata.ValueFromIncomingContext(rpc.Context, "x-forwarded-for")
		}
		client, _ := proxies.Client(from.Addr.String(), forwarded)
		return client
	}
}
