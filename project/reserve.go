package project

import "dappco.re/go/core/go-ratelimit/internal/admission"

// Reserve says how much of its limits in tokens and in dollars a call reserves while it is under way:
// [ReserveMost] or [ReserveExpected]. Empty is the default: limits in dollars and all limits of runs
// reserve the most, other limits in tokens reserve what is expected.
type Reserve = admission.Reserve

const (
	// ReserveMost reserves the most that a call can use. Such a limit is hard: no answer, however long,
	// uses more than the limit has. A call whose most is not known is denied.
	ReserveMost = admission.ReserveMost

	// ReserveExpected reserves what a call is expected to use. What a call uses beyond that is a debt:
	// it delays the calls that come after it.
	ReserveExpected = admission.ReserveExpected
)
