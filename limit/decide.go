package limit

import (
	"math"
	"time"
)

// purpose says why a decision is made.
type purpose uint8

const (
	toTake purpose = iota // to charge the request if it may pass and no call waits for the same counters
	toPeek                // to learn what toTake would answer, and charge nothing
	inTurn                // to charge the request if it may pass, for the first call in line
)

// present, as the time of a decision, means the time at which all counters are locked.
const present = math.MinInt64

// decide is consider, with the time to wait for if other calls wait already.
func decide(demands []demand, why purpose, at int64, r *Reservation) Decision {
	d, queued := consider(demands, why, at, r)
	if queued {
		d.RetryAfter = turn(demands)
	}
	return d
}

// consider is the one decision behind every door: it locks all counters in the order of
// their books, reads the clock, asks every limit, and charges all of them or none. It
// adds what it charges to r, unless r is nil. queued reports whether it denied only
// because other calls wait.
func consider(demands []demand, why purpose, at int64, r *Reservation) (d Decision, queued bool) {
	if d, ok := invalid(demands); ok {
		return d, false
	}
	now := lockAll(demands, why != toPeek && possible(demands), at)
	ruled := rule(demands, now, true)
	queued = ruled.Allowed && why != inTurn && anyAwaited(demands)
	switch {
	case !ruled.Allowed:
	case queued || why == toPeek:
		ruled = rule(demands, now, false)
	default:
		for i := range demands {
			demands[i].take(now)
			r.add(&demands[i], now)
		}
	}
	for i := range demands {
		demands[i].unlock()
	}
	for i := range demands {
		demands[i].book.sweep(now)
	}
	ruled.Allowed = ruled.Allowed && !queued
	return ruled.decision(), queued
}

// invalid returns the denial of demands of which a limit is not valid, or of which an
// amount is negative and has no limit to deny it. ok is false for all other demands.
func invalid(demands []demand) (Decision, bool) {
	for i := range demands {
		if demands[i].n < 0 && len(demands[i].limits) == 0 {
			return Decision{RetryAfter: Never}, true
		}
		if demands[i].book.valid {
			continue
		}
		for _, l := range demands[i].limits {
			if l.Validate() != nil {
				return Decision{Limit: l, RetryAfter: Never}, true
			}
		}
	}
	return Decision{}, false
}

// possible reports whether the demands can pass at any time.
func possible(demands []demand) bool {
	for i := range demands {
		for _, l := range demands[i].limits {
			if l.never(demands[i].n) {
				return false
			}
		}
	}
	return true
}

// lockAll locks the counters, and returns the time of the decision: at, or the current
// time if at is present. Keys without a counter get one if create is set.
func lockAll(demands []demand, create bool, at int64) int64 {
	for {
		for i := range demands {
			demands[i].lock(create)
		}
		now := at
		if at == present {
			now = clock()
		}
		stale := false
		for i := range demands {
			stale = stale || !demands[i].current(now, at != present)
		}
		if !stale {
			return now
		}
		for i := range demands {
			demands[i].unlock()
		}
		for i := range demands {
			if !demands[i].current(now, at != present) {
				demands[i].rebase(now)
			}
		}
	}
}

// anyAwaited reports whether calls wait for a counter from which the demands take
// anything.
func anyAwaited(demands []demand) bool {
	for i := range demands {
		if demands[i].awaited() && demands[i].asks() {
			return true
		}
	}
	return false
}

// rule returns the verdict of the limit that decides: on the amounts of the demands, or
// on amounts of zero unless demanded is set.
func rule(demands []demand, now int64, demanded bool) ruling {
	r := unruled
	for i := range demands {
		n := int64(0)
		if demanded {
			n = demands[i].n
		}
		demands[i].check(&r, now, n)
	}
	return r
}

// turn returns the time until the first of the calls passes that wait for the demands'
// counters.
func turn(demands []demand) time.Duration {
	now := clock()
	due := now + 1
	for _, k := range lineKeysOf(demands) {
		k.book.waiting.Lock()
		if l := k.line(); l != nil {
			due = max(due, l.due)
		}
		k.book.waiting.Unlock()
	}
	return time.Duration(due - now)
}
