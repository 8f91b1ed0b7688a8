package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// RPC is a call as a plain limiter sees it: its functions take the key, the limits
// and the cost from it.
type RPC struct {
	Context context.Context
	Method  string // like "/package.Service/Method"
	Request any    // the message of a unary call; nil for a stream
}

// Limiter is what [LimitUnary] and [LimitStream] ask about calls: a
// *[limit.Limiter] of them, whatever its keys, or a *[limit.Combined].
type Limiter interface {
	Spend(rpc RPC) limit.Decision
	Peek(rpc RPC) limit.Decision
	Wait(ctx context.Context, rpc RPC) error
}

// LimitUnary is [UnaryServerInterceptor] without projects: only calls reach a
// handler which the limiter lets pass.
//
//	perClient := limit.NewLimiter(grpclimit.ClientPrefix(), limit.PerSecond(10), limit.PerMinute(200))
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.LimitUnary(perClient)),
//		grpc.StreamInterceptor(grpclimit.LimitStream(perClient)),
//	)
//
// The limiter says what a call's key is, what its limits are, and what it costs:
// see [limit.Limiter.WithCost]. Its functions are called once for a call, and again
// for one that waits. The QuotaFailure of a denial names the limit that decided by
// its text, such as "10/s".
//
// The options are [Wait], [Shadow], [Skip] and [Observe]. LimitUnary panics if the
// limiter is nil, and if it is given Identify or Cost, which are for projects.
func LimitUnary(limiter Limiter, options ...Option) grpc.UnaryServerInterceptor {
	return newPlain(limiter, options).unary()
}

// LimitStream is [LimitUnary] for streams. It charges one once, when it is opened.
func LimitStream(limiter Limiter, options ...Option) grpc.StreamServerInterceptor {
	return newPlain(limiter, options).stream()
}

func newPlain(limiter Limiter, options []Option) *settings {
	s := applied(options)
	switch {
	case limiter == nil:
		panic("ratelimit: an interceptor needs a limiter: it is nil")
	case s.identify != nil:
		panic("ratelimit: a plain limiter takes no Identify: it has a key function")
	case s.cost != nil:
		panic("ratelimit: a plain limiter takes no Cost: it says itself what a call costs, see limit.Limiter.WithCost")
	}
	s.plain = &admit.PlainGate[RPC]{
		Limiter: limiter, Wait: s.gate.Wait, Shadow: s.gate.Shadow, Observe: s.observe, Policies: new(admit.Policies),
	}
	return s
}

// Observe tells observe what a plain limiter has decided on each call, once it has:
// for metrics, for logs, and to see what [Shadow] would deny. It is called on the
// call's goroutine.
func Observe(observe func(rpc RPC, d limit.Decision)) Option {
	if observe == nil {
		panic("ratelimit: Observe needs a function: it is nil")
	}
	return func(s *settings) { s.observe = observe }
}

// ClientPrefix returns a key function for a [limit.Limiter] of calls, which tells
// clients apart by their address: IPv4 by all of it, IPv6 by its /64, which is what
// one customer has.
//
// The address is that of the peer. If the peer is one of the trusted proxies, it is
// the rightmost address of the metadata x-forwarded-for that is none of them; if all
// are, or none is there, it is the one farthest away. Only trusted proxies are
// believed, so a client cannot choose who it is, whatever it sends. Calls whose
// client is not known, such as those over a Unix socket, share the zero prefix.
//
// It panics if a prefix is not valid.
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
