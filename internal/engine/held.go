package engine

import "sync/atomic"

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

// noteHeld notes which limits of the scope deny a call only because of what calls under way have reserved: when these
// end, the call may pass.
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
		if said.Used-s.Scope.Held(l.Unit)+r.Amount(l.Unit, ask) <= l.Limit.Count() {
			s.held |= 1 << i
		}
	}
}

// IsHeld reports whether one of the limits of a scope denies the call only because of what calls under way have
// reserved.
func (s *Standing) IsHeld(i int) bool { return s.held&(1<<i) != 0 }
