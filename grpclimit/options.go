package grpclimit

import (
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Option changes what the interceptors do.
type Option func(*settings)

type settings struct {
	gate     admit.Gate
	identify func(context.Context) (string, error)
	cost     func(ctx context.Context, method string, request any) (requests, tokens int, err error) // nil: one request
	skip     func(ctx context.Context, method string) bool                                           // nil: none

	// Of LimitUnary and LimitStream:
	plain   *admit.PlainGate[RPC] // nil: of projects
	observe func(RPC, limit.Decision)
}

func newSettings(limiter *project.Limiter, options []Option) *settings {
	s := applied(options)
	switch {
	case limiter == nil:
		panic("ratelimit: an interceptor needs a limiter: it is nil")
	case s.observe != nil:
		panic("ratelimit: an interceptor for projects takes no Observe: their limiter has an observer")
	case s.identify == nil:
		s.identify = fromMetadata
	}
	s.gate.Limiter = limiter
	return s
}

func applied(options []Option) *settings {
	s := &settings{}
	for _, o := range options {
		o(s)
	}
	return s
}

// Identify takes the name of a call's project from identify, in place of the
// metadata x-project-id. Its error is the text of an InvalidArgument. A name is 1
// to 128 characters of visible ASCII.
func Identify(identify func(context.Context) (string, error)) Option {
	if identify == nil {
		panic("ratelimit: Identify needs a function: it is nil")
	}
	return func(s *settings) { s.identify = identify }
}

// Cost charges what cost returns for a call, in place of one request and no
// tokens. method is like "/package.Service/Method"; request is the message of a
// unary call, and nil for a stream. Zero requests count as one. A cost that is
// negative or absurdly large is an InvalidArgument, and so is an error, whose text
// the client gets.
//
// Tokens are an estimate, of prompt and output together. The handler finds the
// reservation with [ReservationFrom] and may commit what was really used; if it
// has not when it returns, or panics, what was reserved stands.
func Cost(cost func(ctx context.Context, method string, request any) (requests, tokens int, err error)) Option {
	if cost == nil {
		panic("ratelimit: Cost needs a function: it is nil")
	}
	return func(s *settings) { s.cost = cost }
}

// Skip lets calls pass for which skip returns true: nothing is asked of them, and
// nothing charged. method is like "/package.Service/Method".
func Skip(skip func(ctx context.Context, method string) bool) Option {
	if skip == nil {
		panic("ratelimit: Skip needs a function: it is nil")
	}
	return func(s *settings) { s.skip = skip }
}

// Shadow counts and tells the limiter's observers what would become of a call, but
// lets every call pass, whatever is wrong with it or with the store. It makes no
// call wait.
func Shadow() Option {
	return func(s *settings) { s.gate.Shadow = true }
}

// Wait lets a call wait in turn, for at most as long, where it would have been
// denied. One that cannot pass in time, or not before its own deadline, is
// denied at once. A client that goes away while it waits has taken nothing. Zero
// is not to wait.
func Wait(most time.Duration) Option {
	if most < 0 {
		panic(fmt.Sprintf("ratelimit: Wait(%v): it must not be negative", most))
	}
	return func(s *settings) { s.gate.Wait = most }
}
