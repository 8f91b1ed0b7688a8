// Package call takes calls of models along their straight line: ask the limits,
// hear what the provider says of its own, settle. Package llmhttp does so in the
// client, and package gateway in front of the provider.
package call

import (
	"bytes"
	"context"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limits is what calls are charged to.
type Limits struct {
	Models    *ratelimit.RateLimiter
	Projects  *project.Limiter // nil: none. Its Models are these
	Estimator llm.Estimator
}

// Call is one call of a model.
type Call struct {
	Limits  *Limits
	Asks    llm.Request
	Counted bool   // its prompt was counted by a tokenizer
	Quota   string // the model that is charged
	Guessed bool   // the provider has not yet said what the quota is: no prompt is too long for it
	Project string

	MaxWait time.Duration // see [project.Call]

	MaxPause time.Duration // see [ratelimit.RateLimiter.HeedWithin]

	// ChargeSeen charges a response that has not told its usage what was seen of it. Else
	// what was reserved for its output stands, or more: see unknownOutput.
	ChargeSeen bool

	// Heeded returns what of a provider's word holds for all who share the quota. nil:
	// all of it.
	Heeded func(said llm.Limits) llm.Limits

	asked       llm.Tokens             // that the limits were asked for
	reservation *ratelimit.Reservation // nil before it is acquired, and once it is settled
}

// Acquire reserves what the call is thought to use, in its turn.
func (c *Call) Acquire(ctx context.Context) (project.Decision, error) {
	if c.Limits.Projects == nil {
		return c.ask(ctx, c.Limits.Models.AcquireCall)
	}
	return c.askBoth(ctx, c.Limits.Projects.Acquire)
}

// Try is Acquire that does not wait. A denial is no error.
func (c *Call) Try(ctx context.Context) (project.Decision, error) {
	if c.Limits.Projects == nil {
		return c.ask(ctx, c.Limits.Models.TryAcquireCall)
	}
	return c.askBoth(ctx, c.Limits.Projects.Take)
}

func (c *Call) ask(ctx context.Context, through func(context.Context, ratelimit.Call) (*ratelimit.Reservation, ratelimit.Decision, error)) (project.Decision, error) {
	var d ratelimit.Decision
	var err error
	c.asked = c.estimate()
	c.reservation, d, err = through(ctx, ratelimit.Call{Model: c.Quota, Tokens: c.asked, MaxWait: c.MaxWait})
	c.reservation.Keep()
	return project.Decision{Allowed: d.Allowed, Exceeded: d.Limit, RetryAfter: d.RetryAfter, Model: &d}, err
}

func (c *Call) askBoth(ctx context.Context, through func(context.Context, project.Call) (*ratelimit.Reservation, project.Decision, error)) (d project.Decision, err error) {
	c.asked = c.estimate()
	c.reservation, d, err = through(ctx, project.Call{
		Project: c.Project, Model: c.Quota, Tokens: c.asked, MaxWait: c.MaxWait,
	})
	c.reservation.Keep()
	return d, err
}

// Unanswered settles a call that has got no answer: one that was never sent costs nothing,
// and one that was sent may have cost all that was reserved. It does nothing to a call that
// is settled, or was never acquired.
func (c *Call) Unanswered(sent bool) {
	switch {
	case c.reservation == nil:
	case sent:
		c.commit(unknown)
	default:
		c.reservation.Cancel()
		c.reservation = nil
	}
}

// MostOfError is how many bytes of an error are looked at.
const MostOfError = 64 << 10

// Telling reports whether the body of a response with such a status may tell why the
// call was refused.
func Telling(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == llm.StatusOverloaded
}

// Reads reports whether Failed needs the text of an error with such a status: one that is
// [Telling], or one in which Groq may quote what the model has generated.
func (c *Call) Reads(status int) bool {
	return Telling(status) || c.Asks.Provider == llm.Groq && status == http.StatusBadRequest
}

// quotes stands in an error of Groq's before an answer that is not the JSON, or the call of
// a tool, that was asked for. The answer has cost tokens, which are not told.
var quotes = []byte(`"failed_generation"`)

// bytesOfToken is more than a token of nearly any text has.
const bytesOfToken = 6

// Failed settles a call to which the provider has answered with an error: it counts
// as a request, and has used no tokens. One in which something broke may have used
// all that was reserved, and so may one that quotes an answer, or more. It returns
// what the provider has said of its limits.
func (c *Call) Failed(ctx context.Context, status int, h http.Header, text []byte) llm.Limits {
	used := llm.Usage{Exact: true}
	switch {
	case bytes.Contains(text, quotes):
		used = llm.Usage{Input: -1, Output: len(text) / bytesOfToken}
	case status >= http.StatusInternalServerError && !Telling(status):
		used = unknown
	}
	said := c.Hear(ctx, status, h, text)
	c.commit(used)
	return said
}

// Hear lets the limiter know what a response says about the provider's limits, and that
// the provider has taken the call, if it has.
func (c *Call) Hear(ctx context.Context, status int, h http.Header, text []byte) llm.Limits {
	said := llm.ReadLimits(c.Asks.Provider, status, h, text, time.Now())
	c.heed(ctx, said)
	if status/100 == 2 {
		c.reservation.Served()
	}
	return said
}

func (c *Call) heed(ctx context.Context, said llm.Limits) {
	if c.Heeded != nil {
		said = c.Heeded(said)
	}
	c.Limits.Models.HeedWithin(ctx, c.Quota, said, c.MaxPause)
}

// Settle corrects what was reserved to what the response says that the call has used,
// and has the estimator learn it.
func (c *Call) Settle(ctx context.Context, m *llm.Meter) llm.Usage {
	used := m.Usage()
	if fault := m.Fault(); fault != "" {
		c.heed(ctx, llm.ReadFault(fault, time.Now()))
	}
	c.commit(used)
	c.Limits.Estimator.Learn(c.Project, &c.Asks, used)
	return used
}
