package project

import "dappco.re/go/core/go-ratelimit/internal/engine"

// Reserve says how much of its limits in tokens and in dollars a call reserves while it is under way:
// [ReserveMost] or [ReserveExpected]. Empty is the default: limits in dollars and all limits of runs
// reserve the most, other limits in tokens reserve what is expected.
type Reserve = engine.Reserve

const (
	// ReserveMost reserves the most that a call can use. Such a limit is hard: no answer, however long,
	// uses more than the limit has. A call whose most is not known is denied.
	ReserveMost = engine.ReserveMost

	// ReserveExpected reserves what a call is expected to use. What a call uses beyond that is a debt:
	// it delays the calls that come after it.
	ReserveExpected = engine.ReserveExpected
)

// OnOverrun says what becomes of a stream that uses more of a limit than it has reserved: [OverrunDebt], which is the
// default, or [OverrunCut]. It matters to limits that reserve what is expected: see [Reserve].
type OnOverrun = engine.OnOverrun

const (
	// OverrunDebt lets the stream go on. What it uses beyond its reservation is a debt.
	OverrunDebt = engine.OverrunDebt

	// OverrunCut lets a stream reserve more as its answer comes, in slices, by [Reservation.Extend], and ends it where
	// that is denied. Such a limit is hard, although calls reserve what is expected of their answers. Of the prompt, and
	// of answers that do not come as a stream, the most is reserved.
	OverrunCut = engine.OverrunCut
)

// Hard reports whether the limits in tokens and in dollars are hard: no answer, however long, uses more than there is.
// Of others, what calls under way use beyond what is expected of them is a debt.
func (l Limit) Hard() (tokens, dollars bool) {
	cut := l.OnOverrun == OverrunCut
	return l.Reserve == ReserveMost || cut, l.Reserve != ReserveExpected || cut
}

// Hard is [Limit.Hard] for the limits of runs.
func (r RunLimit) Hard() (tokens, dollars bool) {
	hard := r.Reserve != ReserveExpected || r.OnOverrun == OverrunCut
	return hard, hard
}
