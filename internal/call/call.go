// Package call takes one call of a model along its straight line: reserve what it is
// estimated to use, read what the provider says about its limits, settle with what the call
// has used. Package llmhttp does this in the client, and package gateway in front of the
// provider.
package call

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limits has the limiters that calls are charged to, and the estimator of their tokens.
type Limits struct {
	Models    *ratelimit.RateLimiter
	Projects  *project.Limiter // the projects of Models; nil: calls have no project
	Estimator dialect.Estimator
	failures  freeFailures
}

// Call is one call of a model.
type Call struct {
	// Call is what the limiter is asked: its Model is the name of the quota that is charged, and the estimator learns
	// by its RunProject. Acquire, Try and Decide set its amounts; Tokens and Dollars are those that the call is
	// expected to use.
	ratelimit.Call

	Limits       *Limits
	Request      dialect.Request
	ExactPrompt  bool // a tokenizer has counted Request.Prompt
	Prices       *Prices
	Provider     string // the provider's name in Prices; empty: that of the Request
	QuotaGuessed bool   // the provider has not confirmed the quota, so no prompt counts as too long for it

	// Cost is what the call has cost, once it is settled. It is [price.Unknown] for a model without a
	// price.
	Cost price.Amount

	// Charged is what the call was charged in all, attempts that failed included, once it is settled.
	Charged Charged

	Fit Fit // whether the request's bound on its answers may be lowered

	MaxPause time.Duration // see [ratelimit.RateLimiter.HeedWithin]

	// ChargeSeen charges only the output that was seen, where a response ends before it
	// has reported its usage. Without it, such a call is charged what was reserved for its
	// output, or more: see unknownOutput.
	ChargeSeen bool

	// ChargeFailed charges a call that the provider has answered with an error of its own (5xx) the
	// price that was reserved. Without it, such a call costs nothing in dollars, but for a project that
	// has many of them: see freeFailures.
	ChargeFailed bool

	// Owner says on whose line of the books the call is entered when it is settled. nil: on none.
	Owner *books.Owner

	// Applies returns the part of what the provider says about its limits that concerns every
	// caller of the quota. nil: all of it.
	Applies func(said llm.Limits) llm.Limits

	unfitted *dialect.Request // the request with its own bound, if that was lowered; else nil

	batch       bool       // the call stands for a batch that was denied
	unbounded   bool       // what was reserved is the most that a model can write, because no bound was set
	expected    llm.Tokens // the estimator's answer; zero before the limits are first asked
	bound       llm.Tokens // the most tokens that the call can use, for limits that reserve them: zero if none does, negative if nobody knows
	stream      stream
	ending      ending
	quoted      quoted
	reserved    price.Amount           // the highest price that the limits were last asked for
	reservation *ratelimit.Reservation // nil before the call is admitted, and once it is settled
}

// Charged is what calls were charged. A price that is not known counts as nothing.
type Charged struct {
	Input, Output int64 // tokens
	Dollars       price.Amount
	Waited        bool // it has waited in line
}

// Estimated returns how many tokens were last reserved for the call.
func (c *Call) Estimated() int64 { return int64(c.Tokens.Input) + int64(c.Tokens.Output) }

// Acquire reserves what the call is estimated to use, of its model and of its project. It
// waits for the call's turn. A call that may be fitted passes at once if that helps.
func (c *Call) Acquire(ctx context.Context) (d ratelimit.Decision, err error) {
	if c.Fit.Min > 0 {
		return c.acquireFitted(ctx)
	}
	err = c.wait(ctx, &d)
	return d, err
}

// wait fills in d, which is large.
func (c *Call) wait(ctx context.Context, d *ratelimit.Decision) (err error) {
	c.reservation, *d, err = c.Limits.Models.AcquireCall(ctx, *c.ready())
	c.reservation.Keep()
	return err
}

// Try is Acquire without the wait. A denial is no error.
func (c *Call) Try(ctx context.Context) (d ratelimit.Decision, err error) {
	if c.Fit.Min > 0 {
		if d, ok := c.tryFitted(ctx); ok {
			return d, nil
		}
	}
	return c.try(ctx)
}

func (c *Call) try(ctx context.Context) (d ratelimit.Decision, err error) {
	c.reservation, d, err = c.Limits.Models.TryAcquireCall(ctx, *c.ready())
	c.reservation.Keep()
	return d, err
}

// TryTentatively is Try for one of several quotas that the call may be charged to. Observers
// get no event of a denial, because the caller asks again with another quota.
func (c *Call) TryTentatively(ctx context.Context) (ratelimit.Decision, error) {
	return c.try(engine.Tentatively(ctx))
}

// ready sets the amounts that the limiter is asked for. The estimator is asked once, and its answer is cut down to the
// limits of each quota.
func (c *Call) ready() *ratelimit.Call {
	q, _ := c.Limits.Models.Quota(c.Model)
	caps := c.caps()
	c.quote()
	if c.expected == (llm.Tokens{}) && !c.quoted.byUnits { // before the bound, since the estimator knows how long stored contexts are
		c.expected = c.Limits.Estimator.Estimate(c.base(), &c.Request)
	}
	c.MostDollars = c.setBound(&q, &caps)
	c.Tokens = c.estimate(&q, &caps)
	c.Dollars = c.expectedPrice(&caps)
	c.FirstDollars = c.setFirst(&q, &caps)
	c.reserved = max(c.Dollars, c.MostDollars, c.FirstDollars)
	c.Most, c.First = q.Count.Dearest(c.bound), q.Count.Dearest(c.stream.first)
	c.Units, c.Requests = c.Request.Units, c.Request.Requests
	return &c.Call
}

// base returns the project by which the estimator learns.
func (c *Call) base() string { return cmp.Or(c.RunProject, c.Project) }

// Unanswered settles a call that the provider has not answered. A call that was not sent
// costs nothing; one that was sent is charged what was reserved. A call without a
// reservation stays as it is.
func (c *Call) Unanswered(sent bool) { c.unanswered(sent, failed) }

// Abandoned is Unanswered for a call whose caller has left before the answer came. If it was sent, it
// is charged the most that it can have used.
func (c *Call) Abandoned(sent bool) { c.unanswered(sent, cut) }

func (c *Call) unanswered(sent bool, how ending) {
	switch {
	case c.reservation == nil:
	case sent:
		c.ending = how
		used := c.withUnits(unknownUsage)
		c.commit(used, c.usedPrice(used))
	default:
		c.reservation.Cancel()
		c.reservation = nil
	}
}

// MaxErrorBody is how many bytes of a provider's error are read.
const MaxErrorBody = 64 << 10

// ReadsError reports whether Failed needs the body of an error with this status: it may
// say how long to wait, or quote an answer.
func (c *Call) ReadsError(status int) bool {
	return dialect.MayThrottle(status) || dialect.QuotesAnswers(c.Request.Provider, status)
}

// quotedAnswer is the field in which an error of Groq's quotes an answer that is not the
// JSON, or the tool call, that the request demands. The answer has cost tokens, and the
// error does not say how many.
var quotedAnswer = []byte(`"failed_generation"`)

// bytesPerToken is more bytes than a token has on average in nearly any text.
const bytesPerToken = 6

// Failed settles a call that the provider has answered with an error. The call counts as a
// request that used no tokens and costs nothing, with two exceptions. After an error inside the
// provider, the call keeps the tokens that it was expected to use, because the provider may have counted them;
// whether it costs dollars depends on ChargeFailed. An error that quotes an answer costs at least the
// tokens of the answer. Failed returns what the provider reports about its limits.
func (c *Call) Failed(ctx context.Context, status int, h http.Header, text []byte) llm.Limits {
	used, cost := llm.Usage{Exact: true}, price.Amount(0)
	c.ending = whole // an attempt before may have ended in another way
	switch {
	case bytes.Contains(text, quotedAnswer):
		used = llm.Usage{Input: -1, Output: len(text) / bytesPerToken}
		cost = c.usedPrice(used)
	case status >= http.StatusInternalServerError && !dialect.MayThrottle(status):
		used, c.ending = unknownUsage, erred
		if c.ChargeFailed {
			c.ending = failed
			cost = c.usedPrice(used)
		} else if !c.Limits.failures.take(c.base(), time.Now()) {
			cost = c.Dollars
		}
	}
	said := c.Hear(ctx, status, h, text)
	c.commit(used, cost)
	return said
}

// Hear passes on to the limiter what a response says about the provider's limits, and
// whether the provider has served the call.
func (c *Call) Hear(ctx context.Context, status int, h http.Header, text []byte) llm.Limits {
	said := dialect.ReadLimits(c.Request.Provider, status, h, text, time.Now())
	c.apply(ctx, said)
	if status/100 == 2 {
		c.reservation.Served()
	}
	return said
}

// apply passes on to the limiter what the provider reports about its limits.
func (c *Call) apply(ctx context.Context, said llm.Limits) {
	if c.Applies != nil {
		said = c.Applies(said)
	}
	c.Limits.Models.HeedWithin(ctx, c.Model, said, c.MaxPause)
}

// Settle corrects the reservation to the usage that the response has reported, and lets
// the estimator learn from it. complete reports whether the body of the response has come to its end;
// the end of a stream in it is enough, too.
func (c *Call) Settle(ctx context.Context, m *dialect.Meter, complete bool) llm.Usage {
	used := c.withUnits(m.Usage())
	c.ending = whole
	switch {
	case c.Cut() != nil:
		c.ending = stopped
		c.stream.came = m.MostOutput()
	case !complete && !m.Ended():
		c.ending = cut
	}
	if fault := m.Fault(); fault != "" {
		c.apply(ctx, dialect.ReadFault(fault, time.Now()))
	}
	c.commit(used, c.usedPrice(used))
	c.Limits.Estimator.Learn(c.base(), &c.Request, used)
	if id := m.ResponseID(); id != "" || c.Request.Context != "" {
		c.Limits.Estimator.LearnContext(c.base(), &c.Request, id, used)
	}
	return used
}
