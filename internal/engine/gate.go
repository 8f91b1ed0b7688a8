package engine

import (
	"context"
	"time"
)

// Gate stands before the limits of a shared scope. While it is closed, it admits no call but single probes, which find
// out whether it may open. It may also lower the limits.
type Gate interface {
	// Idle reports whether the gate is open and lowers nothing, which it nearly always
	// is. The other methods are not called then, but for Settled and ProbeEnded.
	Idle() bool

	// Lower returns rules with the limits as they are at a time.
	Lower(r *Rules, now int64) *Rules

	// Look returns for how long the gate is closed.
	Look(now int64) Closed

	// Admit admits one call, if it may: as a probe, whose number is not 0, if the gate is closed.
	Admit(now int64) (probe int64, closed Closed)

	// ProbeEnded reports what a probe has found out.
	ProbeEnded(now, probe int64, found Probe)

	// Settled reports how much a call that has ended gives back of what it has taken of the scope.
	Settled(refund Amounts)

	// Reconsider corrects when a call passes that lowered limits have denied: the store
	// does not know of what they are lowered by.
	Reconsider(ctx context.Context, s *Standing, ask *Ask) error
}

// Closed says for how long a gate is closed. The zero Closed is open.
type Closed struct {
	For   time.Duration // as callers are answered
	Probe time.Duration // until a single call may find out whether it opens
}

// Probe is what a probe has found out.
type Probe uint8

const (
	ProbeUnsent  Probe = iota // nothing: the call was not sent
	ProbeRefused              // nothing: the provider has refused the call as not valid
	ProbeServed               // the provider takes calls
)

// endProbe reports what the call has found out, if it is a probe.
func (r *Reservation) endProbe(found Probe) {
	if r.probe != 0 {
		r.gated.gate.ProbeEnded(r.engine.clock(), r.probe, found)
	}
}
