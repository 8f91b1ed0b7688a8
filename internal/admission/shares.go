package admission

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/share"
	"dappco.re/go/core/go-ratelimit/limit"
)

// sharing is how the limits of a shared scope are divided among the flows of its calls.
type sharing struct {
	pool   *share.Pool
	limits []int    // the limits that are divided, by their places in Rules.Limits
	names  []string // of the shares, as callers and observers are told them

	nobody share.Who // the member of calls without a scope of their own

	mu       sync.Mutex
	counters map[string]*Scope // that count what each member uses, in a store that several processes share
}

// mostCounters is how many counters of members are ready at most. The others are made again.
const mostCounters = 4096

// counter returns the scope that counts what a member of the pool uses, in all processes, of limits
// that slide. Days are so long that it is early enough when processes tell each other. Its limits
// deny nothing. Their keys have the last slash of the shared scope's, so that a store asks for both
// at once.
func (c *claim) counter(e *Engine) (*Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.counters[c.member.Name]; s != nil {
		return s, nil
	}
	s := e.NewOwn(c.scope.Key+"share:"+url.PathEscape(c.member.Name)+":", "")
	s.counts = true
	r := &Rules{}
	for _, i := range c.limits {
		l := c.rules.Limits[i]
		if l.Limit.Algorithm() == limit.SlidingLog {
			r.Limits = append(r.Limits, Limit{Unit: l.Unit, Limit: l.Limit.WithCount(Boundless), Free: true, ID: i})
		}
	}
	if err := e.SetRules(s, r); err != nil {
		return nil, err
	}
	if c.counters == nil || len(c.counters) >= mostCounters {
		c.counters = map[string]*Scope{}
	}
	c.counters[c.member.Name] = s
	return s, nil
}

// mostShared is how many limits of a scope are divided. No scope has more yet.
const mostShared = 12

// ShareEnd ends the name of a share of a limit.
const ShareEnd = "_share"

// divide lets the limits of a shared scope be divided. What the flows have used stays, if
// nothing but counts has changed since the rules before.
func (r *Rules) divide(before *Rules) {
	var list []limit.Limit
	s := &sharing{}
	for i := range r.Limits {
		if l := &r.Limits[i]; !l.Free && !l.Pace && l.Unit != Slots && len(list) < mostShared {
			list = append(list, l.Limit)
			s.limits, s.names = append(s.limits, i), append(s.names, l.Name+ShareEnd)
		}
	}
	if before != nil && before.sharing != nil && before.Reserve == r.Reserve && slices.Equal(before.sharing.kinds(before), s.kinds(r)) {
		s.pool = before.sharing.pool
	} else if len(list) > 0 {
		s.pool = share.NewPool(list, r.Reserve)
		s.pool.Follow(&r.scope.engine.dedicated)
	} else {
		return
	}
	r.sharing = s
}

// kinds returns the limits that are divided without their counts.
func (s *sharing) kinds(r *Rules) (list []Limit) {
	for _, i := range s.limits {
		l := r.Limits[i]
		l.Limit = l.Limit.WithCount(1)
		list = append(list, l)
	}
	return list
}

// claim is what a call asks for of its flow's shares.
type claim struct {
	*sharing // nil: nothing is divided
	rules    *Rules
	scope    *Scope
	member   *share.Who
	terms    share.Terms
	lent     bool // others do not want what the call takes
	room     [mostShared]share.Amount
}

// claimOf fills in the claim of a call, which is empty, and reports whether it has one. Calls
// without a scope of their own are one member, as soon as there is another.
func (o *Outcome) claimOf(c *Call, to *claim) bool {
	all := o.all()
	var own *Scope
	for i := range all {
		s := all[i].Scope
		switch {
		case s.line == nil && own == nil:
			own = s
		case s.line != nil && all[i].plan.rules != nil:
			to.rules, to.scope = all[i].plan.rules, s
		}
	}
	if to.rules == nil || to.rules.sharing == nil || own == nil && to.rules.sharing.pool.Empty() {
		return false
	}
	to.sharing = to.rules.sharing
	if to.member = &to.nobody; own != nil {
		own = own.Real()
		to.member, to.terms = &own.member, own.terms()
	}
	for k, i := range to.limits {
		l := &to.rules.Limits[i]
		to.room[k] = share.Amount{N: -1, Count: l.Limit.Count()}
		if c.Part.has(l.Unit) {
			to.room[k].N = to.rules.Amount(l.Unit, &c.Ask)
		}
	}
	return true
}

// terms returns what the flow of a scope was promised where it shares another.
func (s *Scope) terms() (t share.Terms) {
	if r := s.rules.Load(); r != nil {
		t = r.terms()
	}
	return t
}

func (r *Rules) terms() share.Terms {
	return share.Terms{Weight: r.Weight, Rank: r.Rank, Min: r.MinShare, Max: r.MaxShare}
}

// Dedicate lets flows have the MinShare of their rules in every shared scope, even if they have
// never called. It replaces the flows that had it so far.
func (e *Engine) Dedicate(flows map[string]*Rules) {
	terms := make(map[string]share.Terms, len(flows))
	for name, r := range flows {
		terms[name] = r.terms()
	}
	e.dedicated.Set(terms)
}

func (c *claim) amounts() []share.Amount { return c.room[:len(c.limits)] }

func (c *claim) take(now int64, again bool) share.Denial {
	return c.pool.Take(c.member, c.terms, now, c.amounts(), again)
}

// extra returns what was charged beyond what the call asks for, or nil for nothing.
func (c *claim) extra() (list []int64) {
	for k := range c.limits {
		if n := c.room[k].Extra; n != 0 {
			if list == nil {
				list = make([]int64, len(c.limits))
			}
			list[k] = n
		}
	}
	return list
}

// giveBack gives back what take has taken at a time.
func (c *claim) giveBack(at int64, o *Outcome) {
	c.pool.GiveBack(c.member, at, c.amounts(), o.wants())
}

// wants reports whether the flow of a call that was denied wants its share. It does not, if limits
// of its own deny the call, or if the call can never pass.
func (o *Outcome) wants() bool {
	shared, own := o.waits(SlotGuess)
	return own == 0 && shared != limit.Never
}

// used returns what is used of the limits that are divided, by their own verdicts.
func (c *claim) used(o *Outcome, list []int64) []int64 {
	s := o.Of(c.scope)
	for _, i := range c.limits {
		n := int64(0)
		if k := slices.Index(s.plan.limits, i); k >= 0 {
			n = o.said()[s.first+k].Used
		}
		list = append(list, n)
	}
	return list
}

// align lets the pool know when the fixed windows of its limits began, by their own verdicts.
func (c *claim) align(o *Outcome, now int64) {
	s := o.Of(c.scope)
	for k, i := range c.limits {
		if at := slices.Index(s.plan.limits, i); at >= 0 && c.rules.Limits[i].Limit.Algorithm() == limit.FixedWindow {
			said := &o.said()[s.first+at]
			c.pool.Began(k, now, said.Since, now+int64(said.ResetAfter))
		}
	}
}

// deny lets the outcome say that a share has denied the call.
func (c *claim) deny(o *Outcome, d share.Denial, now int64) {
	o.Of(c.scope).share, o.Denied = c.denial(d, now), true
}

func (c *claim) denial(d share.Denial, now int64) *Share {
	s := &Share{Name: c.names[d.Quota], Limit: &c.rules.Limits[c.limits[d.Quota]], Denial: d, RetryAfter: limit.Never}
	if !d.Never {
		s.RetryAfter = time.Duration(max(d.Until-now, 1))
	}
	return s
}

// Share is what a flow's share of a limit has said to a call that it denies.
type Share struct {
	share.Denial
	Name       string
	Limit      *Limit        // that is divided
	RetryAfter time.Duration // until enough of what the flow has used has come back; limit.Never, if the call is larger than its MaxShare
}

// Share returns which share of the scope denies the call, or nil.
func (s *Standing) Share() *Share { return s.share }

// Shares returns where the flows of a shared scope stand in each of its limits that is divided, and
// the names of these limits.
func (e *Engine) Shares(s *Scope) (limits []string, flows []share.Standing) {
	r := s.rules.Load()
	if r == nil || r.sharing == nil {
		return nil, nil
	}
	for _, i := range r.sharing.limits {
		limits = append(limits, r.Limits[i].Name)
	}
	return limits, r.sharing.pool.Read(e.clock())
}

// again returns when a call that a share denies asks again. The share may grow at any time,
// because others may want less than was expected.
func (s *Share) again() time.Duration {
	period := s.Limit.Limit.Period()
	return min(s.RetryAfter, max(min(period/600, SlotGuess), 10*time.Millisecond))
}

// takeShared is takeLimits of a call that has a claim.
func (e *Engine) takeShared(ctx context.Context, c *Call, o *Outcome, cl *claim) (*Reservation, error) {
	now := e.clock()
	if d := cl.take(now, c.again); d.Denied {
		if err := e.peekStandings(ctx, &c.Ask, o); err != nil {
			return nil, err
		}
		if d.Never {
			cl.pool.Unask(cl.member, cl.amounts())
			cl.deny(o, d, now)
			return nil, nil
		}
		if o.Denied { // the limits deny it too, and it is theirs to say when it passes
			if !o.wants() {
				cl.pool.Unask(cl.member, cl.amounts())
			}
			return nil, e.reconsider(ctx, c, o)
		}
		var room [mostShared]int64
		cl.align(o, now)
		if !cl.pool.Lend(cl.member, now, cl.amounts(), cl.used(o, room[:0])) {
			cl.deny(o, d, now)
			return nil, nil
		}
		cl.lent = true
	}
	res, err := e.takeCounted(ctx, c, o, cl, now)
	if res == nil {
		cl.giveBack(now, o)
		return nil, err
	}
	res.shared, res.at = true, now
	if extra := cl.extra(); extra != nil {
		res.set().extra = extra
	}
	return res, err
}

// takeCounted is takeStore of a call that its share admits, as far as this process knows. If others
// share the store, the store also counts what the member uses, and the call is denied after all if
// that is more than this process knew of.
func (e *Engine) takeCounted(ctx context.Context, c *Call, o *Outcome, cl *claim, now int64) (*Reservation, error) {
	if e.memory != nil {
		return e.takeStore(ctx, c, o, now)
	}
	f := e.join()
	if f == nil {
		return e.takeStore(ctx, c, o, now)
	}
	f.changed(cl.scope)
	if cl.lent || cl.pool.Alone() {
		return e.takeStore(ctx, c, o, now)
	}
	counter, err := cl.counter(e)
	if err != nil {
		return nil, err
	}
	o.also(counter, c.Part)
	res, err := e.takeStore(ctx, c, o, now)
	if res == nil {
		return nil, err
	}
	var room [mostShared]int64
	if d := cl.pool.Confirm(cl.member, now, cl.amounts(), cl.counted(o, counter, room[:0])); d.Denied {
		res.settle(&c.Ask, &Amounts{}, nil)
		cl.deny(o, d, now)
		return nil, nil
	}
	return res, nil
}

// counted returns what the member has used of the limits that are divided, in all processes.
func (c *claim) counted(o *Outcome, counter *Scope, list []int64) []int64 {
	s := o.Of(counter)
	for _, i := range c.limits {
		n := int64(-1)
		for at := range s.Len() {
			if l, said := o.At(s, at); l.ID == i {
				n = said.Used
			}
		}
		list = append(list, n)
	}
	return list
}

// peekShares says what the share of a call says that all limits admit.
func (e *Engine) peekShares(c *Call, o *Outcome) {
	var cl claim
	if o.Denied || !o.claimOf(c, &cl) {
		return
	}
	now := e.clock()
	var room [mostShared]int64
	if d := cl.pool.Peek(cl.member, now, cl.amounts()); d.Denied && !cl.pool.WouldLend(cl.member, now, cl.amounts(), cl.used(o, room[:0])) {
		cl.deny(o, d, now)
	}
}

// correctShare corrects what the call has taken of its flow's shares to what it has used.
func (r *Reservation) correctShare(asked *Ask, used *Amounts) {
	var rules *Rules
	var member *share.Who
	for _, p := range r.plans {
		switch {
		case p.scope.line == nil && member == nil:
			member = &p.scope.Real().member
		case p.scope.line != nil:
			rules = p.rules
		}
	}
	if member == nil {
		member = &rules.sharing.nobody
	}
	var more [mostShared]int64
	for k, i := range rules.sharing.limits {
		u := rules.Limits[i].Unit
		if used[u] >= 0 {
			more[k] = used[u] - rules.Amount(u, asked)
		}
	}
	rules.sharing.pool.Correct(member, r.at, more[:len(rules.sharing.limits)], r.extra)
}

// share returns the share that denies the call, or nil.
func (o *Outcome) share() *Share {
	if s := o.shared(); s != nil {
		return s.share
	}
	return nil
}

// shared returns the standing in which a share denies the call, or nil.
func (o *Outcome) shared() *Standing {
	all := o.all()
	for i := range all {
		if all[i].share != nil {
			return &all[i]
		}
	}
	return nil
}

// inPool is a waiting call as the pool of its shared scope knows it.
type inPool struct {
	engine  *Engine // nil: nothing is divided
	waiting share.Waiting
}

// waitInPool says that a call waits from now on; own, that it waits for limits of its own.
func (all Scopes) waitInPool(e *Engine, c *Call, own bool) inPool {
	var o Outcome
	var cl claim
	o.begin(e, c.Part, all)
	if !o.claimOf(c, &cl) {
		return inPool{}
	}
	p := inPool{e, cl.pool.Wait(cl.member, cl.terms, e.clock())}
	if e.memory == nil {
		if f := e.join(); f != nil {
			f.changed(cl.scope)
		}
	}
	if own {
		p.turn(true)
	}
	return p
}

// mostUnasked is for how long a call that its share denies does not ask a store that several processes
// share, as long as this process knows of nothing by which it would pass.
const mostUnasked = 3 * time.Second

// stillDenied answers a waiting call that its share has denied, if it would be denied again as far
// as this process knows. So a call that asks often asks the store rarely.
func (w *wait) stillDenied() (a line.Answer, denied bool) {
	e, now := w.engine, w.engine.clock()
	if e.memory != nil || w.result.Outcome.share() == nil || now-w.asked >= int64(mostUnasked) || e.closed.Load() || w.scopes.closed() != nil {
		return a, false
	}
	var o Outcome
	var cl claim
	o.begin(e, w.call.Part, w.scopes)
	if !o.claimOf(w.call, &cl) {
		return a, false
	}
	d := cl.pool.StillDenies(cl.member, now, cl.amounts())
	if !d.Denied {
		return a, false
	}
	return cl.denial(d, now).answer(), true
}

// answer lets a waiting call that the share denies ask again, while others have their turns.
func (s *Share) answer() line.Answer {
	return line.Answer{Again: s.again(), Yield: true, By: s.Name, Guess: true}
}

// turn says whether limits of the call's own have denied it in its turn.
func (p inPool) turn(own bool) {
	if p.engine != nil {
		p.waiting.Turn(own)
	}
}

// leave says that the call waits no more.
func (p inPool) leave() {
	if p.engine != nil {
		p.waiting.Leave(p.engine.clock())
	}
}
