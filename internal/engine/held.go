package engine

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// held is how much calls under way have reserved of a scope in this process, of each unit whose limits reserve the
// most of a call. Nearly all of it comes back when they end.
type held [units]atomic.Int64

// hold notes what a call has reserved by a plan of the scope.
func (s *Scope) hold(p *plan, asked *Ask) { s.addHeld(p, asked, 1) }

// giveBack notes that a call does not hold any more what it has reserved by a plan of the scope.
func (s *Scope) giveBack(p *plan, asked *Ask) { s.addHeld(p, asked, -1) }

func (s *Scope) addHeld(p *plan, asked *Ask, sign int64) {
	if p.rules == nil || !p.rules.hard {
		return
	}
	h := s.heldOf()
	for i := range p.charges {
		if u := p.charges[i].unit; p.rules.Most[u] {
			h[u].Add(sign * p.rules.Amount(u, asked))
		}
	}
}

// heldOf returns how much calls under way have reserved of the scope.
func (s *Scope) heldOf() *held {
	if h := s.held.Load(); h != nil {
		return h
	}
	s.held.CompareAndSwap(nil, new(held))
	return s.held.Load()
}

// Reserves reports whether a limit on a unit reserves the most of a call.
func (s *Scope) Reserves(u Unit) bool {
	r := s.rules.Load()
	return r != nil && r.Most[u] && r.smallest[u] > 0
}

// Held returns how much of a unit calls under way have reserved of the scope in this process, if its limits reserve
// the most of a call.
func (s *Scope) Held(u Unit) int64 {
	if h := s.Real().held.Load(); h != nil {
		return h[u].Load()
	}
	return 0
}

// heldPeriod is for how long the store counts what a call has reserved, and for how long once more with less and less
// weight. What a process that has died leaves reserved counts as used after that.
const heldPeriod = time.Hour

// manyCalls is more calls than are under way at a time. While a limit has room for so many calls, what others have reserved
// of it cannot be why it denies one.
const manyCalls = 1 << 10

// planHold lets the store count what calls of a part have reserved of a unit, if that comes back long before the limits on
// the unit do, and other processes cannot know it otherwise. The counter has a key of its own. A call takes from it what it
// reserves, and gives all of it back when it is settled.
func (r *Rules) planHold(part Part, p *plan, u Unit) error {
	long := func(l Limit) bool { return l.Unit == u && r.holdsLong(&l) }
	settled := part == Whole || part == Batch
	if r.scope.engine.private || !settled || r.shadowOf != nil || !slices.ContainsFunc(r.Limits, long) {
		return nil
	}
	hold, err := store.Prepare(r.Key(u)+"/held", []limit.Limit{limit.New(Boundless, heldPeriod).Using(limit.SlidingCounter)})
	if err == nil {
		p.holds = append(p.holds, charge{Charge: hold, unit: u})
	}
	return err
}

// holdsLong reports whether a limit reserves the most of a call, and does not reset soon.
func (r *Rules) holdsLong(l *Limit) bool { return r.Most[l.Unit] && l.Limit.Period() >= time.Hour }

// holds returns the charges by which the store counts what the call reserves. There are none if the limits have room for
// very many calls like it.
func (c charged) holds() []charge {
	if !c.counts {
		return nil
	}
	return c.plan.holds
}

// appendHolds appends what the call reserves, unless it is little beside what was left at the last call.
func (s *Standing) appendHolds(list []store.Charge, ask *Ask) []store.Charge {
	s.counts = slices.ContainsFunc(s.plan.holds, func(c charge) bool {
		return s.plan.rules.Amount(c.unit, ask) >= s.plan.rules.ample[c.unit].Load()
	})
	for _, c := range s.holds() {
		list = append(list, c.Charge)
		list[len(list)-1].N = s.plan.rules.Amount(c.unit, ask)
	}
	return list
}

// noteRoom notes how large calls may be so that the limits on what the store counts have room for very many of them.
func (s *Standing) noteRoom() {
	r := s.plan.rules
	for _, c := range s.plan.holds {
		ample := int64(math.MaxInt64)
		for i := range s.Len() {
			if l, said := s.At(i); l.Unit == c.unit && r.holdsLong(l) {
				ample = min(ample, said.Remaining/manyCalls)
				if said.Local {
					ample = 0
				}
			}
		}
		if r.ample[c.unit].Load() != ample {
			r.ample[c.unit].Store(ample)
		}
	}
}

// Reserved returns how much of one of the limits of a scope calls under way have reserved, the call itself included if it
// was admitted: in this process, or in all if that is why the limit denies the call.
func (s *Standing) Reserved(i int) int64 {
	l, _ := s.At(i)
	if n, counted := s.heldByAll(l.Unit); counted && s.IsHeld(i) {
		return n
	}
	return s.Scope.Held(l.Unit)
}

// heldByAll returns how much of a unit calls under way have reserved in all processes, and whether the store has counted
// it. Calls of this process that were too small to be counted may be more than that.
func (s *Standing) heldByAll(u Unit) (n int64, counted bool) {
	for i, hold := range s.holds() {
		if hold.unit == u {
			return max(s.said[:cap(s.said)][len(s.said)+i].Used, s.Scope.Held(u)), true
		}
	}
	return 0, false
}

// noteHeld notes which limits of the scope deny a call only because of what calls under way have reserved: when these
// end, the call may pass. A limit of which nobody knows what is reserved counts as one of these.
func (s *Standing) noteHeld(ask *Ask) {
	r := s.plan.rules
	s.held = 0
	if r == nil || !r.hard {
		return
	}
	for i := range s.Len() {
		l, said := s.At(i)
		if said.Allowed || !r.Most[l.Unit] {
			continue
		}
		need, held := r.Amount(l.Unit, ask), s.Scope.Held(l.Unit)
		if all, counted := s.heldByAll(l.Unit); counted {
			held = all
		} else if said.Local || r.holdsLong(l) && len(s.plan.holds) > 0 {
			held = said.Used // nobody knows, so all of it may be
		}
		if said.Used-held+need <= l.Limit.Count() {
			s.held |= 1 << i
		}
	}
}

// IsHeld reports whether one of the limits of a scope denies the call only because of what calls under way have
// reserved.
func (s *Standing) IsHeld(i int) bool { return s.held&(1<<i) != 0 }
