package grpclimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/argument"
)

// Option changes what the interceptors do.
type Option func(*settings)

type settings struct{ admit.Door[RPC] }

func newSettings(options []Option) *settings {
	s := &settings{}
	for _, o := range options {
		o(s)
	}
	return s
}

// Identify lets identify return the name of a call's project, in place of the metadata
// x-project-id. A name has 1 to 128 characters of visible ASCII. After an error, the client gets
// InvalidArgument with the error's text.
func Identify(identify func(context.Context) (string, error)) Option {
	argument.Function("Identify", identify != nil)
	return func(s *settings) { s.Identify = func(rpc RPC) (string, error) { return identify(rpc.Context) } }
}

// Cost charges what cost returns for a call. method is like "/package.Service/Method"; request is the
// message of a unary call, and nil for a stream. Without Cost, it is one request; and if limits on
// tokens govern the project, one token for each four bytes of the message of a unary call, and one at
// least. A stream is charged one token, whatever is sent in it: its handler has to commit what was used.
// Zero requests count as one. After an error, the client gets InvalidArgument with the error's
// text, and also for a cost that is negative or absurdly large.
//
// Tokens are an estimate of prompt and output together. The handler gets the reservation from
// [ReservationFrom], and may commit what was really used. If it does not, the estimate stays
// charged.
func Cost(cost func(ctx context.Context, method string, request any) (requests, tokens int, err error)) Option {
	argument.Function("Cost", cost != nil)
	return func(s *settings) {
		s.Cost = func(rpc RPC) (requests, tokens int, err error) { return cost(rpc.Context, rpc.Method, rpc.Request) }
	}
}

// Skip lets a call pass if skip returns true. The limiter is not asked about it, and it is
// charged nothing. method is like "/package.Service/Method".
func Skip(skip func(ctx context.Context, method string) bool) Option {
	argument.Function("Skip", skip != nil)
	return func(s *settings) { s.Skip = func(rpc RPC) bool { return skip(rpc.Context, rpc.Method) } }
}

// Shadow lets every call pass, even if it is denied or invalid or the store is lost. The
// limiter counts calls, and its observers get what would have become of them. Calls do not wait.
func Shadow() Option {
	return func(s *settings) { s.Shadow = true }
}

// Wait lets a call that a limit denies wait for its turn, for at most d. A call that cannot
// pass in time, or not before its own deadline, is denied at once. A client that leaves while
// its call waits is charged nothing. With zero, calls do not wait.
func Wait(d time.Duration) Option {
	argument.Duration("Wait", d)
	return func(s *settings) { s.Wait = d }
}
