package engine

import (
	"math/bits"
	"net/url"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// claim is what a call asks for of its flow's shares of the limits of one scope.
type claim struct {
	*sharing
	rules  *Rules
	scope  *Scope
	at     int // the place of the scope among those of the call
	member *fair.Who
	terms  fair.Terms
	said   fair.Denial // the answer of the shares
	taken  bool        // the shares were charged
	lent   bool        // others do not want what the call takes
	room   [mostShared]fair.Amount
}

// claims is what a call asks for of the shares of each of its scopes whose limits are divided.
type claims []claim

// mostClaims is how many scopes of a call may be divided: a model, and a project with all above it.
const mostClaims = 9

// pools returns which of a call's scopes have limits that are divided among several flows, one bit for
// each, and whom the call counts for: nil if it has no scope of its own. Calls without one are one member
// of a shared scope, as soon as there is another.
func (o *Outcome) pools(e *Engine, c *Call, peeks bool) (in uint32, own *member) {
	if o.divided == 0 || e.undivided {
		return 0, nil
	}
	all := o.all()
	for i := range all {
		if all[i].Scope.Kind != Shared {
			own = c.member(all[i].Scope.Real())
			break
		}
	}
	for rest := o.divided; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		if o.isDivided(e, i, own, peeks) {
			in |= 1 << i
		}
	}
	return in, own
}

// isDivided reports whether the scope's limits, which may be divided, are divided for this call. The limits of a project
// with others below it are not while a single one of those calls, unless that one has a maximum share: its scope comes
// before this one.
func (o *Outcome) isDivided(e *Engine, i int, own *member, peeks bool) bool {
	s := &o.all()[i]
	if s.Scope.Kind == Shared {
		return own != nil || !s.plan.rules.sharing.Load().pool.Empty()
	}
	d := s.plan.rules.divided()
	return !e.private || o.capped&(1<<i-1) != 0 || !d.isSole(own, peeks)
}

// isSole reports whether only calls of one member have come to a scope that others are below. While that is
// so, there is nothing to divide in this process. A call that only peeks is not remembered.
func (s *sharing) isSole(own *member, peeks bool) bool {
	if !s.pool.Empty() {
		return false
	}
	sole := s.sole.Load()
	if sole == nil && !peeks && s.sole.CompareAndSwap(nil, own) {
		return true
	}
	return sole == own || sole == nil && peeks
}

// claims appends the claims of a call. list has room for them.
func (o *Outcome) claims(c *Call, in uint32, own *member, list claims) claims {
	all := o.all()
	for i := range all {
		if in&(1<<i) == 0 {
			continue
		}
		list = list[:len(list)+1]
		to := &list[len(list)-1]
		to.rules, to.scope, to.at = all[i].plan.rules, all[i].Scope, i
		to.sharing = to.rules.sharing.Load()
		if to.member = &to.nobody; own != nil {
			to.member, to.terms = &own.Who, own.terms()
		}
		for k, at := range to.limits {
			l := &to.rules.Limits[at]
			to.room[k] = fair.Amount{N: -1, Count: l.Limit.Count()}
			if c.part.has(l.Unit) && !c.part.onlyCounts(l) {
				to.room[k].N = to.rules.Amount(l.Unit, &c.ask)
			}
		}
	}
	return list
}

func (c *claim) amounts() []fair.Amount { return c.room[:len(c.limits)] }

// take asks all shares, and charges those that admit the call. It reports whether all do.
func (all claims) take(now int64, again bool) bool {
	admitted := true
	for i := range all {
		c := &all[i]
		if d := c.pool.Take(c.member, c.terms, now, c.amounts(), again); d.Denied {
			c.said, admitted = d, false
		} else {
			c.taken = true
		}
	}
	return admitted
}

// undo gives back what was taken of shares at a time, for a call that was denied after all. Of a scope
// whose share the call does not want, it is as if it had not asked.
func (all claims) undo(at int64, o *Outcome) {
	for i := range all {
		c := &all[i]
		wanted := o.wants(c.scope)
		if c.taken {
			c.pool.GiveBack(c.member, at, c.amounts(), wanted)
		} else if !wanted {
			c.pool.Unask(c.member, c.amounts())
		}
	}
}

// wants reports whether the flow of a call that was denied wants its share of a scope's limits. It does
// not, if another scope denies the call, or if the call can never pass.
func (o *Outcome) wants(of *Scope) bool {
	all := o.all()
	for i := range all {
		s := &all[i]
		if wait := s.wait(SlotGuess, s.Closed.Probe); wait == limit.Never || wait > 0 && s.Scope != of {
			return false
		}
	}
	return true
}

// amounts returns what was charged, one amount for each limit that is divided; nil if that is what the call asks for,
// and it holds nothing.
func (all claims) amounts() (list []fair.Amount) {
	some := false
	for i := range all {
		for k := range all[i].limits {
			some = some || all[i].room[k].ForCorrect()
		}
	}
	if !some {
		return nil
	}
	for i := range all {
		list = append(list, all[i].amounts()...)
	}
	return list
}

// raise raises what a call is charged of its model's quotas by what shares were charged beyond what it asks for, because
// calls of its flow use more: otherwise they would begin in numbers that exceed the quota together. No charge becomes
// larger than a limit. A call that is the only one of its flow under way is charged what it asks for: so one that has used
// very much does not end those after it, and it is learned when they use less.
func (all claims) raise(o *Outcome, list []store.Charge) {
	scopes := o.all()
	for i := range all {
		cl := &all[i]
		if cl.scope.Kind != Shared {
			continue // the limits of projects, keys and runs reserve exactly what the call asks for
		}
		from := 0
		for k := range cl.at {
			from += len(scopes[k].plan.charges) + len(scopes[k].holds())
		}
		for k, a := range cl.amounts() {
			if a.Extra <= 0 || a.Alone {
				continue
			}
			u := cl.rules.Limits[cl.limits[k]].Unit
			for j := range scopes[cl.at].plan.charges {
				c := &scopes[cl.at].plan.charges[j]
				if n := min(a.N+a.Extra, cl.rules.smallest[u]); c.unit == u && n > list[from+j].N {
					list[from+j] = *c.of(n)
					list[from+j].N = n
				}
			}
		}
	}
}

// mask returns the places of the scopes among those of the call, one bit for each.
func (all claims) mask() (in uint32) {
	for i := range all {
		in |= 1 << all[i].at
	}
	return in
}

// used returns what is used of the limits that are divided, by their own verdicts.
func (c *claim) used(o *Outcome, list []int64) []int64 {
	s := o.Of(c.scope)
	for _, i := range c.limits {
		n := int64(0)
		if k := slices.Index(s.plan.limits, i); k >= 0 {
			n = s.said[k].Used
		}
		list = append(list, n)
	}
	return list
}

// align gives the pool the time at which each fixed window of its limits began, as the limits themselves have answered.
func (c *claim) align(o *Outcome, now int64) {
	s := o.Of(c.scope)
	for k, i := range c.limits {
		if at := slices.Index(s.plan.limits, i); at >= 0 && c.rules.Limits[i].Limit.Algorithm() == limit.FixedWindow {
			said := &s.said[at]
			c.pool.Began(k, now, said.Since, now+int64(said.ResetAfter))
		}
	}
}

// deny enters into the outcome that a share has denied the call.
func (c *claim) deny(o *Outcome, d fair.Denial, now int64) {
	o.Of(c.scope).share, o.Denied = c.denial(d, now), true
}

func (c *claim) denial(d fair.Denial, now int64) *Share {
	s := &Share{
		Name: c.names[d.Quota], Limit: &c.rules.Limits[c.limits[d.Quota]], Denial: d,
		RetryAfter: limit.Never, own: c.scope.Kind != Shared,
	}
	if !d.Never {
		s.RetryAfter = time.Duration(max(d.Until-now, 1))
	}
	return s
}

// mostCounters is how many counters of members are ready at most. The others are made again.
const mostCounters = 4096

// counter returns the scope by which the store counts what a member of the pool uses in all processes, of limits with
// sliding windows; nil if there are none. For days it is early enough when processes exchange their reports. The
// counter's limits deny nothing. Their keys share the divided scope's prefix, so that a store asks for both at once.
func (c *claim) counter(e *Engine) (*Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.counters[c.member.Name]; s != nil {
		return s, nil
	}
	r := &Rules{Most: c.rules.Most, Cut: c.rules.Cut}
	for _, i := range c.limits {
		l := c.rules.Limits[i]
		if l.Limit.Algorithm() == limit.SlidingLog && l.Limit.Period() < 24*time.Hour && !l.Unit.InFlight() {
			r.Limits = append(r.Limits, Limit{Unit: l.Unit, Limit: l.Limit.WithCount(Boundless), Free: true, ID: i})
		}
	}
	if len(r.Limits) == 0 {
		return nil, nil
	}
	s := e.newScope(Counter, c.scope.Key+"share:"+url.PathEscape(c.member.Name)+":", "")
	if err := e.SetRules(s, r); err != nil {
		return nil, err
	}
	if c.counters == nil || len(c.counters) >= mostCounters {
		c.counters = map[string]*Scope{}
	}
	c.counters[c.member.Name] = s
	return s, nil
}

// counted returns what the member has used of the limits that are divided, in all processes.
func (c *claim) counted(o *Outcome, counter *Scope, list []int64) []int64 {
	s := o.Of(counter)
	for _, i := range c.limits {
		n := int64(-1)
		for at := range s.Len() {
			if l, said := s.At(at); l.ID == i {
				n = said.Used
			}
		}
		list = append(list, n)
	}
	return list
}
