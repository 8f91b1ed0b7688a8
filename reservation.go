package ratelimit

import (
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/store"
)

// Reservation is what a call has taken before it is known what it costs. End it
// with Commit or Cancel. The first of these calls counts, and others do
// nothing; so a deferred Cancel is harmless after Commit. A nil Reservation is
// one that took nothing.
//
// A request that is limited in number, by its model or its project, has its place
// among the concurrent ones until then, and for ten minutes at most: see [Reservation.Keep].
type Reservation struct {
	model   *model
	taken   amounts  // all zero where nothing limits the call
	at      int64    // when it was taken
	noted   *noted   // the store's note of what it took there, or nil
	keeping *keeping // of its places for longer than a lease, or nil
	epoch   int32    // of the model, in which it was taken
	split   bool     // the estimate was of the prompt and the output apart
	open    bool     // nothing limits the model: it is told of what was used
	inTurn  bool     // it was had by a turn in line, which has cost what was taken
	project string
	probe   int64 // of a pause, as [pauses] numbers it; 0: the call is none
	ended   atomic.Bool
}

// noted is what a store knows a reservation by: what was taken of a model by
// rules, and of a project by limits.
type noted struct {
	rules   *rules
	limits  *ProjectLimits // nil: none
	request request
	receipt store.Receipt
}

// Commit corrects what was reserved to what the call has used, in the windows
// that it was taken from. What was used beyond the estimate is a debt, which
// delays what comes next; what was not used is free at once, as far as it still
// counts. A negative number is one that is not known: what was reserved stands. So
// Commit(-1, -1) is for a call that has failed after it was sent.
//
// Where the store that counts cannot be asked, the correction is made once it
// can, and the error is Persist's and Close's.
func (r *Reservation) Commit(promptTokens, outputTokens int) {
	r.CommitTokens(Tokens{Input: promptTokens, Output: outputTokens})
}

// CommitTokens is Commit for a call of which the provider does not count all
// towards its limits.
func (r *Reservation) CommitTokens(t Tokens) {
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return
	}
	t.Input, t.Output = max(t.Input, -1), max(t.Output, -1)
	t.FreeInput, t.FreeOutput = min(max(t.FreeInput, 0), max(t.Input, 0)), min(max(t.FreeOutput, 0), max(t.Output, 0))
	input, output := t.Input-t.FreeInput, t.Output-t.FreeOutput // that count
	if r.open && r.model.name != "" {
		r.model.limiter.RecordUsage(r.model.name, input, output)
	}
	r.probed(max(t.Input, t.Output))
	used := r.taken
	used[ofSlots] = 0
	if input >= 0 {
		used[ofInput] = bounded(input)
	}
	if output >= 0 {
		used[ofOutput] = bounded(output)
	}
	switch {
	case r.split || input >= 0 && output >= 0:
		used[ofTokens] = used[ofInput] + used[ofOutput]
		used[ofAll] = used[ofTokens] + r.free(t)
	case input >= 0:
		used[ofTokens] = max(used[ofTokens], used[ofInput])
		used[ofAll] = max(used[ofAll], bounded(t.Input))
	case output >= 0:
		used[ofTokens] = max(used[ofTokens], used[ofOutput])
		used[ofAll] = max(used[ofAll], bounded(t.Output))
	}
	r.model.limiter.settle(r, &used)
	r.model.limiter.observeEnd(r, EventSettled, t)
}

// free returns how many of the tokens do not count for the model. Of a part that is
// not known, as many as were thought.
func (r *Reservation) free(t Tokens) int64 {
	n := bounded(t.FreeInput) + bounded(t.FreeOutput)
	if r.noted != nil && t.Input < 0 {
		n += r.noted.request.freeInput
	}
	if r.noted != nil && t.Output < 0 {
		n += r.noted.request.freeOutput
	}
	return n
}

// Cancel gives back what was reserved, as far as it still counts. It is for a
// call that was never sent: one that has failed has often been counted by the
// provider, so Commit it.
func (r *Reservation) Cancel() {
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return
	}
	if rl := r.model.limiter; r.probe != 0 {
		rl.pauses.giveBack(r.model.name, rl.clock(), r.probe, 0)
	}
	r.model.limiter.settle(r, &amounts{})
	r.model.limiter.observeEnd(r, EventCancelled, Tokens{})
}

// bounded returns a number of tokens as one that can be counted.
func bounded(n int) int64 { return min(max(int64(n), 0), maxTokens) }
