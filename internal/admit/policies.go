package admit

import (
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Policies remembers values of RateLimit-Policy. Projects with the same limits
// share one. Of two that belong in one slot, it remembers the last.
type Policies struct {
	slots [1 << slotBits]atomic.Pointer[policy]
}

const slotBits = 8

// policy is what is the same in all responses on some windows.
type policy struct {
	limit   limit.Limit // of a plain limiter; zero for those of projects
	windows []*project.Window
	periods []string // the parameter t of each that lasts its whole period

	// value is that of RateLimit-Policy. It is in many responses at a time, and
	// full, so that whoever adds to a response's gets a copy.
	value []string
}

// of returns the policy of the standings' windows.
func (p *Policies) of(standings []project.Standing) *policy {
	slot := &p.slots[slotOf(standings)]
	known := slot.Load()
	if known == nil || !known.isOf(standings) {
		known = newPolicy(standings)
		slot.Store(known)
	}
	return known
}

func newPolicy(standings []project.Standing) *policy {
	p := &policy{}
	var value []byte
	for _, s := range standings {
		p.windows = append(p.windows, s.Window)
		p.periods = append(p.periods, string(appendUntil(nil, s.Window.Period)))
		value = appendPolicy(value, s.Window)
	}
	p.value = []string{string(value)}
	return p
}

func (p *policy) isOf(standings []project.Standing) bool {
	if len(p.windows) != len(standings) {
		return false
	}
	for i, known := range p.windows {
		if w := standings[i].Window; w != known && *w != *known {
			return false
		}
	}
	return true
}

// slotOf spreads sets of windows over the slots, by their counts and periods.
func slotOf(standings []project.Standing) uint64 {
	var hash uint64
	for i := range standings {
		hash = mix(hash, standings[i].Window.Count, standings[i].Window.Period)
	}
	return hash >> (64 - slotBits)
}

func mix(hash uint64, count int64, period time.Duration) uint64 {
	return (hash ^ uint64(count) ^ uint64(period)) * 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
}
