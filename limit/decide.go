package limit

import (
	"math"
	"time"
)

// purpose is what a decision is made for.
type purpose uint8

const (
	toTake purpose = iota // charge it, if it may pass and nobody waits for it
	toPeek                // say what toTake would, and charge nothing
	inTurn                // charge it, if it may pass, for the first of those who wait
)

// present is the time of a decision that is made as of now.
const present = math.MinInt64

// decide answers the demands, and charges them if it can.
func decide(demands []demand, why purpose, at int64, r *Reservation) Decision {
	d, queued := consider(demands, why, at, r)
	if queued {
		d.RetryAfter = turn(demands)
	}
	return d
}

// consider is the one decision behind every door: it locks all counters, in
// the order of their books, reads the clock, asks every limit, and charges all
// of them or none. What it charges it enters into r, if that is not nil. It
// says whether it denied only because others wait.
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
			r.enter(&demands[i], now)
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

// invalid returns the decision where a limit is not valid, or no limit says
// that less than nothing cannot pass.
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

// possible reports whether a time may come at which the demands pass.
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

// lockAll locks the counters and returns the time of the decision: at, or when
// the last of them was locked.
func lockAll(demands []demand, make bool, at int64) int64 {
	for {
		for i := range demands {
			demands[i].lock(make)
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

func anyAwaited(demands []demand) bool {
	for i := range demands {
		if demands[i].awaited() && demands[i].asks() {
			return true
		}
	}
	return false
}

// rule returns what the deciding limit says to what is demanded, or to nothing.
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

// turn returns when the first of those who wait for any of the demands passes.
func turn(demands []demand) time.Duration {
	now := clock()
	due := now + 1
	for _, p := range placesOf(demands) {
		p.book.waiting.Lock()
		if l := p.line(); l != nil {
			due = max(due, l.due)
		}
		p.book.waiting.Unlock()
	}
	return time.Duration(due - now)
}
