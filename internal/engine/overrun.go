package engine

import "fmt"

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
