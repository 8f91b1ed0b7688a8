package call

import (
	"context"
	"fmt"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

const (
	// firstSlice is by how many tokens a stream is extended first: 64 tokens of text have about 256 letters, and nobody
	// knows whether each is a token before the provider says so. Each slice is twice as large as the one before, so that a
	// stream of 8,192 tokens is extended eight times at most.
	firstSlice = 4 * 64

	// firstTimes is how many times the expected length of an answer a stream reserves at first whose tokens nobody counts
	// before it ends: until then each of its letters may be a token, and some answers are longer than expected.
	firstTimes = 6

	// inFlight is the number of tokens that a stream keeps reserved beyond those received: the provider may have generated
	// them already when the gateway cuts the stream off.
	inFlight = 64
)

// stream is the reservation of a streamed answer in limits with on_overrun: cut.
type stream struct {
	first  llm.Tokens // the tokens reserved before the call was sent; zero if no limit cuts the answer
	output int        // the reserved tokens of output, extensions included
	came   int        // an upper bound of the tokens of output received so far
	slice  int        // the tokens of the next extension
	denial *engine.Denial
	lost   error // the store could not be asked
}

// cuts reports whether a limit of the call cuts streams.
func cuts(q *ratelimit.ModelQuota, caps *engine.Caps) bool {
	return caps.CutTokens || caps.CutDollars || q.OnOverrun == project.OverrunCut && q.ReserveTokens != project.ReserveMost
}

// setFirst finds out what the call reserves at first of limits that cut, if its answer can be cut, and returns what that
// costs.
func (c *Call) setFirst(q *ratelimit.ModelQuota, caps *engine.Caps) price.Amount {
	c.stream = stream{}
	if !cuts(q, caps) || c.bound.Input < 0 || !c.Request.Visible() || c.Request.Fallbacks {
		return 0
	}
	output := c.firstOutput(q, caps)
	c.stream = stream{first: llm.Tokens{Input: c.bound.Input, Output: output}, output: output, slice: firstSlice}
	if c.quoted.price == nil {
		return 0
	}
	return min(c.most(c.bound.Input, output, ""), maxReserved)
}

// firstOutput returns how many tokens of its answer a stream reserves at first: what is expected, or several times that
// where nobody counts its tokens before it ends, but no more of a limit than an eighth. A call that waits costs less than
// an answer that is cut off.
func (c *Call) firstOutput(q *ratelimit.ModelQuota, caps *engine.Caps) int {
	expected := min(c.Tokens.Output, c.bound.Output)
	if caps.Tokens > 0 { // of an expected answer that is longer than the limit, as much is reserved as the limit has
		expected = min(expected, max(int(caps.Tokens)-c.bound.Input, 0))
	}
	if c.Request.Counted() {
		return expected
	}
	output := min(firstTimes*expected, c.bound.Output)
	for _, tokens := range [...]int64{caps.Tokens, int64(q.MaxTPM), int64(q.MaxOutputTPM)} {
		if tokens > 0 {
			output = min(output, int(tokens/8))
		}
	}
	if caps.Dollars > 0 && c.quoted.price != nil {
		for output > expected && int64(c.most(c.bound.Input, output, "")) > caps.Dollars/8 {
			output /= 2
		}
	}
	return max(output, expected)
}

// Extends reports whether the answer to the call reserves what it uses as it comes: ask Extend before each of its events.
func (c *Call) Extends() bool { return (*engine.Reservation)(c.reservation).Extends() }

// Extend makes sure that enough is reserved for an answer of which at most came tokens were received, and takes the next
// slice if it is not. It returns false if a limit denies the slice; then the answer must end: see Cut.
func (c *Call) Extend(ctx context.Context, came int) bool {
	s := &c.stream
	s.came = came
	need := min(came+inFlight, c.bound.Output) - s.output
	if need <= 0 {
		return true
	}
	if s.denial != nil || s.lost != nil {
		return false
	}
	slice := min(max(need, s.slice), c.bound.Output-s.output)
	if c.take(ctx, slice) {
		return true
	}
	if left := c.affordable(slice); left >= need && need < slice {
		return c.take(ctx, min(max(need, left/2), slice)) // the other half is for other streams
	}
	return false
}

// take reserves a slice of the answer, or keeps why that was denied.
func (c *Call) take(ctx context.Context, slice int) bool {
	s := &c.stream
	q, _ := c.Limits.Models.Quota(c.Model)
	more, dollars := q.Count.Dearest(llm.Tokens{Output: slice}), c.slicePrice(slice)
	s.denial, s.lost = (*engine.Reservation)(c.reservation).Extend(context.WithoutCancel(ctx), more, dollars)
	if s.denial != nil || s.lost != nil {
		return false
	}
	s.output += slice
	s.slice *= 2
	c.reserved = min(c.reserved+dollars, maxReserved)
	return true
}

// slicePrice returns what a slice of the answer costs.
func (c *Call) slicePrice(slice int) price.Amount {
	if c.quoted.price == nil {
		return 0
	}
	input, output := c.stream.first.Input, c.stream.output
	return min(max(c.most(input, output+slice, "")-c.most(input, output, ""), 0), maxReserved)
}

// affordable returns how many tokens of a slice that was denied cost what is left of the limit.
func (c *Call) affordable(slice int) int {
	d := c.stream.denial
	if d == nil {
		return 0
	}
	each := int64(1)
	if d.Limit.Unit == engine.Dollars {
		each = max(int64(c.slicePrice(slice))/int64(slice)+1, 1)
	}
	return int(d.Left / each)
}

// longestWindow is the longest period of a window. A limit with a longer period is a total.
const longestWindow = 31 * 24 * time.Hour

// Cut returns the error with which an answer ends whose reservation was not extended, or nil if it was.
func (c *Call) Cut() *dialect.Refusal {
	d := c.stream.denial
	switch {
	case c.stream.lost != nil:
		return &dialect.Refusal{Status: http.StatusServiceUnavailable, Message: "cut off: the limits cannot be checked at the moment"}
	case d == nil:
		return nil
	}
	owner := c.model()
	if !d.Scope.OfModel() {
		owner = decision.OwnerText(d.Scope.Name)
	}
	r := &dialect.Refusal{Status: http.StatusTooManyRequests, Tokens: d.Limit.Unit != engine.Dollars}
	r.Message = fmt.Sprintf("cut off: the limit %q of %s has no more for this answer", d.Limit.Name, owner)
	switch {
	case d.Limit.Limit.Period() > longestWindow: // a total
		r.Status = http.StatusPaymentRequired
	case d.RetryAfter == limit.Never: // the slice was larger than the limit
		r.LeaveRetry = true
	default:
		r.RetryAfter, r.Retry = d.RetryAfter, d.RetryAfter <= maxAutoRetry
		r.Message += fmt.Sprintf(": try again in %v", roundedUp(d.RetryAfter))
	}
	return r
}

// CutBy returns the name of the limit that has cut the answer off, and whose it is, or empty strings.
func (c *Call) CutBy() (limit, owner string) {
	if d := c.stream.denial; d != nil {
		return d.Limit.Name, d.Scope.Name
	}
	return "", ""
}
