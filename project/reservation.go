package project

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// Reservation is what a call has taken before it is known what it costs. End it
// with Commit or Cancel. The first of these calls counts, and others do
// nothing; so a deferred Cancel is harmless after Commit. A nil Reservation is
// one that took nothing.
//
// If the model or the project has MaxConcurrent, the call holds a slot until then, and for
// ten minutes at most: see [Reservation.Keep].
type Reservation engine.Reservation

// Commit corrects what was reserved to what the call has used, in the windows
// that it was taken from. What was used beyond the estimate is a debt, which
// delays what comes next; what was not used is free at once, as far as it still
// counts. A negative number is one that is not known: what was reserved stands. So
// Commit(-1, -1) is for a call that has failed after it was sent.
//
// If the store that counts cannot be asked, the correction is made once it can. OnError of
// the limiter's Config gets the error, and Close returns it.
func (r *Reservation) Commit(promptTokens, outputTokens int) {
	r.CommitTokens(llm.Tokens{Input: promptTokens, Output: outputTokens})
}

// CommitTokens is Commit for a call some of whose tokens the provider does not count
// towards its limits, such as those of a cached prompt: name these in FreeInput and
// FreeOutput. The quota of the model is charged without them, the limits of the project
// with them.
func (r *Reservation) CommitTokens(t llm.Tokens) {
	if r != nil {
		(*engine.Reservation)(r).Commit(t)
	}
}

// CommitPriced is CommitTokens of a call whose price is known as well, for limits in dollars. Of a
// price that is [price.Unknown], what was reserved stands, as it does with the other commits.
func (r *Reservation) CommitPriced(t llm.Tokens, dollars price.Amount) {
	if r != nil {
		(*engine.Reservation)(r).CommitPriced(t, int64(dollars))
	}
}

// Count says what the call has used beside tokens, such as images, before it is committed: see [Call].Units. Without
// it, what was reserved stands, as it does for a unit of which the number is negative.
func (r *Reservation) Count(used llm.Units) { (*engine.Reservation)(r).Count(used) }

// Extend reserves more for a stream, whose answer becomes longer than was reserved: output tokens, and what they
// cost. It is charged to those limits of the call whose OnOverrun is [OverrunCut], to all of them or to none, and
// reports whether it was. If not, end the stream, and commit what was used. Calls that no such limit governs, or whose
// [Call].First was not set, have reserved what they need: Extend does nothing, and allows.
//
// Ask before the answer grows beyond what is reserved, and for more each time, such as 64, 128 and 256 tokens: each
// extension asks the store once. What is not used is given back by the commit, as with any reservation.
func (r *Reservation) Extend(ctx context.Context, more llm.Tokens, dollars price.Amount) (bool, error) {
	if r == nil {
		return true, nil
	}
	denial, err := (*engine.Reservation)(r).Extend(ctx, more, dollars)
	return denial == nil && err == nil, err
}

// Cancel gives back what was reserved, as far as it still counts. It is for a
// call that was never sent: one that has failed has often been counted by the
// provider, so Commit it.
func (r *Reservation) Cancel() {
	if r != nil {
		(*engine.Reservation)(r).Cancel()
	}
}

// Keep lets the call hold its slots until it is committed or cancelled, however long that
// takes, as long as the process lives. Use it for calls that may take longer than ten
// minutes, and be sure to commit or cancel them: their slots are not free otherwise.
func (r *Reservation) Keep() {
	if r != nil {
		(*engine.Reservation)(r).Keep()
	}
}

// Served says that the provider has taken the call, before it is known what the call uses.
// If the call was the probe of a pause (see RateLimiter.Heed), the pause ends for all. A
// Commit of tokens that were used does the same.
func (r *Reservation) Served() {
	if r != nil {
		(*engine.Reservation)(r).Served()
	}
}
