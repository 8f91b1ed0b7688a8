package project

import (
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Reservation is what a call has taken before it is known what it uses. End it with
// Commit or Cancel. The first of these calls counts, and others do nothing; so a
// deferred Cancel is harmless after Commit. A nil Reservation is one that took nothing.
type Reservation admission.Reservation

// Commit corrects what was reserved to what the call has used, in the windows that it
// was taken from. What was used beyond the estimate is a debt, which delays what comes
// next; what was not used is free at once, as far as it still counts. A negative number
// is one that is not known: what was reserved stands.
func (r *Reservation) Commit(promptTokens, outputTokens int) {
	if r != nil {
		(*admission.Reservation)(r).Commit(llm.Tokens{Input: promptTokens, Output: outputTokens})
	}
}

// Cancel gives back what was reserved, as far as it still counts. It is for a call that
// was never made.
func (r *Reservation) Cancel() {
	if r != nil {
		(*admission.Reservation)(r).Cancel()
	}
}

// Keep lets the call keep its place among the calls at a time until it ends, however
// long that takes, as long as the process lives. Without it a call has its place for ten
// minutes at most.
func (r *Reservation) Keep() {
	if r != nil {
		(*admission.Reservation)(r).Keep()
	}
}
