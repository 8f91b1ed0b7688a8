package gateway

import (
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// quotaUsage remembers how much of each quota was used when its limits last decided on a
// call. It knows where most is left without asking the store.
type quotaUsage struct {
	parts sync.Map // from a quota's name to *usedParts
}

// usedParts are the parts of a quota that were used at a time, from 0 to 1, each in its
// scarcest limit: of the limits of a minute and of calls at a time, and of the limits
// of a day.
type usedParts struct {
	minute, day float64
	at          time.Time
}

// record remembers what a decision says about a quota. A quota whose limits deny a call
// counts as used up, unless it is only the project's share that denies.
func (q *quotaUsage) record(quota string, d *ratelimit.Decision, now time.Time) {
	parts, limited := &usedParts{at: now}, false
	for l := range d.Stats.Limits() {
		if l.Max == 0 {
			continue
		}
		part := &parts.minute
		if k, _ := kind.Named(l.Name); k.Window() == kind.Day {
			part = &parts.day
		}
		*part, limited = max(*part, float64(l.Used)/float64(l.Max)), true
	}
	if !limited { // clients may invent any number of models without a quota
		return
	}
	if !d.Allowed && d.Code != ratelimit.DecisionProjectLimit && d.Code != ratelimit.DecisionShareLimit {
		parts.minute = 1
	}
	q.parts.Store(quota, parts)
}

// at returns which part of a quota is used, as far as is known: what was used of a minute is
// taken to become free evenly within a minute, and what was used of a day within a day.
func (q *quotaUsage) at(quota string, now time.Time) float64 {
	found, ok := q.parts.Load(quota)
	if !ok {
		return 0
	}
	parts := found.(*usedParts)
	age := now.Sub(parts.at)
	return max(parts.minute*rest(age, time.Minute), parts.day*rest(age, llm.Day), 0)
}

// rest returns the part of a window that is left at an age.
func rest(age, window time.Duration) float64 { return 1 - float64(age)/float64(window) }
