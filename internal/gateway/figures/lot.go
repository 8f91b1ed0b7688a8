package figures

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How long figures are kept, and how exactly.
const (
	Minutes = 60 // how many minutes are kept, the current one included

	step  = 5 * time.Second // what is known of the last minute
	steps = int(time.Minute / step)
)

// Sum is what became of some calls.
type Sum struct {
	Passed  int64 // calls that were sent to a provider
	Failed  int64 // those of them that the provider has not answered with a success
	Denied  int64
	Refused int64 // calls that the gateway did not accept: not allowed, or while the store did not answer
	Waited  int64 // those of them, passed or denied, that have waited
	Input   int64 // tokens
	Output  int64
	Dollars int64 // billionths

	// Estimated and Actual are the tokens of the calls whose usage the provider has reported: those
	// that were reserved, and those that were used.
	Estimated, Actual int64
}

// Add adds other to s.
func (s *Sum) Add(other *Sum) {
	s.Passed += other.Passed
	s.Failed += other.Failed
	s.Denied += other.Denied
	s.Refused += other.Refused
	s.Waited += other.Waited
	s.Input += other.Input
	s.Output += other.Output
	s.Dollars += other.Dollars
	s.Estimated += other.Estimated
	s.Actual += other.Actual
}

// count adds a call.
func (s *Sum) count(c *Call) {
	if c.Waited {
		s.Waited++
	}
	if c.Refused {
		s.Refused++
		return
	}
	if c.Denied {
		s.Denied++
		return
	}
	s.Passed++
	if c.Failed {
		s.Failed++
	}
	s.Input += c.Input
	s.Output += c.Output
	s.Dollars += c.Dollars
	if c.Estimated > 0 {
		s.Estimated += c.Estimated
		s.Actual += c.Input + c.Output
	}
}

// slot is a sum of a tick: of a minute, or of a step.
type slot struct {
	tick uint32
	Sum
}

// denial is how many calls a limit has denied in a minute.
type denial struct {
	minute uint32
	count  uint32
	limit  string
}

// mostDenials is how many denials a lot keeps. Limits have a few names, so nothing is lost in practice.
const mostDenials = 8 * Minutes

// lot is the figures of one name.
type lot struct {
	Name
	counted *atomic.Int64 // the number of lots that this one counts among

	mu      sync.Mutex
	closed  bool     // a sweep has removed the lot
	minutes []slot   // those with calls, oldest first
	steps   []slot   // of the last minute
	denials []denial // oldest first
}

// tickOf returns the number of a minute or step.
func tickOf(t time.Time, period time.Duration) uint32 { return uint32(t.UnixNano() / int64(period)) }

// count counts a call. It returns false if the lot is closed.
func (l *lot) count(now time.Time, c *Call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	minute := tickOf(now, time.Minute)
	at(&l.minutes, minute, Minutes).count(c)
	at(&l.steps, tickOf(now, step), steps).count(c)
	if c.Denied {
		l.deny(minute, c.Limit)
	}
	return true
}

// at returns the sum of a tick, and forgets those that are too old. A clock that goes back counts for
// the last tick.
func at(slots *[]slot, tick uint32, keep int) *Sum {
	n := len(*slots)
	if n > 0 && (*slots)[n-1].tick >= tick {
		return &(*slots)[n-1].Sum
	}
	*slots = append(since(*slots, tick, keep), slot{tick: tick})
	return &(*slots)[len(*slots)-1].Sum
}

// since returns the slots of the last ticks, at the beginning of the same array.
func since(slots []slot, tick uint32, keep int) []slot {
	return slices.DeleteFunc(slots, func(s slot) bool { return s.tick+uint32(keep) <= tick })
}

// deny counts a denial by a limit.
func (l *lot) deny(minute uint32, limit string) {
	for i := len(l.denials) - 1; i >= 0 && l.denials[i].minute >= minute; i-- {
		if l.denials[i].limit == limit {
			l.denials[i].count++
			return
		}
	}
	l.denials = slices.DeleteFunc(l.denials, func(d denial) bool { return d.minute+Minutes <= minute })
	if len(l.denials) < mostDenials {
		l.denials = append(l.denials, denial{minute, 1, limit})
	}
}

// close closes the lot if it had no call for as long as figures are kept.
func (l *lot) close(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.minutes); n > 0 { // otherwise its first call is about to be counted
		l.closed = l.minutes[n-1].tick+Minutes <= tickOf(now, time.Minute)
	}
	return l.closed
}
