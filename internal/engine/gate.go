package engine

import (
	"context"
	"time"
)

// Gate stands before the limits of a scope. It may let nothing pass for a while, but
// for single calls that find out whether it may open, and it may lower the limits.
type Gate interface {
	// Idle reports whether the gate is open and lowers nothing, which it nearly always
	// is. The other methods are not called then.
	Idle() bool

	// Lower returns rules with the limits as they are at a time.
	Lower(r *Rules, now int64) *Rules

	// Look says for how long the gate lets nothing pass.
	Look(now int64) Closed

	// Admit lets one call pass, if it may: as a probe, whose number is not 0, if the
	// gate is closed.
	Admit(now int64) (probe int64, closed Closed)

	// GiveBack says that a probe was not made.
	GiveBack(now, probe int64)

	// Served says that the provider has taken a probe, and Committed how many tokens a
	// probe has used: -1 where that is not known.
	Served(probe int64)
	Committed(now, probe int64, used int)

	// Settled says what a call has taken of the scope and what of it it has used.
	Settled(taken, used Amounts)

	// Reconsider corrects when a call passes that lowered limits have denied: the store
	// does not know of what they are lowered by.
	Reconsider(ctx context.Context, e *Engine, s *Standing, ask *Ask) error
}

// Closed says for how long a gate lets nothing pass. The zero Closed is open.
type Closed struct {
	For   time.Duration // as callers are answered
	Probe time.Duration // until a single call may find out whether it opens
}
