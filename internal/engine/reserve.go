package engine

import (
	"fmt"
)

// Reserve says how much of a limit a call reserves while it is under way. Empty is the default of the limit.
type Reserve string

const (
	// ReserveMost reserves the most that a call can use, so that no answer uses more than the limit has.
	ReserveMost Reserve = "most"

	// ReserveExpected reserves what a call is expected to use. What it uses beyond that is a debt.
	ReserveExpected Reserve = "expected"
)

// Validate returns what is wrong with r and what is allowed, or nil.
func (r Reserve) Validate() error {
	switch r {
	case "", ReserveMost, ReserveExpected:
		return nil
	}
	return fmt.Errorf("ratelimit: %.40q: it must be %s or %s, or empty for the default", string(r), ReserveMost, ReserveExpected)
}

// OnOverrun says what becomes of a stream that uses more than it has reserved. Empty is the default, OverrunDebt.
type OnOverrun string

const (
	// OverrunDebt lets the stream go on: what it uses beyond its reservation is a debt.
	OverrunDebt OnOverrun = "debt"

	// OverrunCut lets the stream reserve more as it comes, and ends it when that is denied.
	OverrunCut OnOverrun = "cut"
)

// Validate returns what is wrong with o and what is allowed, or nil.
func (o OnOverrun) Validate() error {
	switch o {
	case "", OverrunDebt, OverrunCut:
		return nil
	}
	return fmt.Errorf("ratelimit: %.40q: it must be %s or %s, or empty for the default", string(o), OverrunDebt, OverrunCut)
}
