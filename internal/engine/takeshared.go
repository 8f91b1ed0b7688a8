package engine

import (
	"context"
	"math/bits"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// takeMany is takeShared of a call that has several claims, which need more room.
func (e *Engine) takeMany(ctx context.Context, c *Call, o *Outcome, in uint32, own *member) (*Reservation, error) {
	var room [mostClaims]claim
	return e.takeShared(ctx, c, o, o.claims(c, in, own, room[:0]))
}

// takeShared is takeLimits of a call that has claims: all shares admit it, or lend it what others do not
// want, or nothing is taken.
func (e *Engine) takeShared(ctx context.Context, c *Call, o *Outcome, all claims) (*Reservation, error) {
	now := e.clock()
	if err := e.seed(ctx, c, o, all, now); err != nil {
		return nil, err
	}
	var res *Reservation
	passes, err := all.take(now, c.again), error(nil)
	if !passes {
		passes, err = e.borrow(ctx, c, o, all, now)
	}
	if passes {
		res, err = e.takeCounted(ctx, c, o, all, now)
	}
	if res == nil {
		all.undo(now, o)
		return nil, err
	}
	res.pools, res.member, res.at, res.taken = all.mask(), all[0].member, now, all.amounts()
	return res, nil
}

// seed enters into pools that have no members yet what the only scope that has called so far has used, because a second
// one calls now.
func (e *Engine) seed(ctx context.Context, c *Call, o *Outcome, all claims, now int64) error {
	for i := range all {
		cl := &all[i]
		sole := cl.sole.Load()
		if sole == nil || !cl.pool.Empty() {
			continue
		}
		if err := e.peekStandings(ctx, &c.ask, o); err != nil {
			return err
		}
		var room [mostShared]int64
		cl.pool.Seed(&sole.Who, sole.terms(), now, cl.used(o, room[:0]))
		o.Denied = false
	}
	return nil
}

// borrow lends a call what the shares that deny it may lend, if the limits themselves admit it. It reports
// whether the call passes.
func (e *Engine) borrow(ctx context.Context, c *Call, o *Outcome, all claims, now int64) (bool, error) {
	if err := e.peekStandings(ctx, &c.ask, o); err != nil {
		return false, err
	}
	for i := range all {
		if cl := &all[i]; cl.said.Never || cl.waitsForShare(o, now) {
			cl.deny(o, cl.said, now)
			return false, nil
		}
	}
	if o.Denied { // the limits deny it too, and decide when it passes
		return false, e.reconsider(ctx, c, o)
	}
	for i := range all {
		cl := &all[i]
		if cl.taken {
			continue
		}
		var room [mostShared]int64
		cl.align(o, now)
		if !cl.pool.Lend(cl.member, now, cl.amounts(), cl.used(o, room[:0])) {
			cl.deny(o, cl.said, now)
			return false, nil
		}
		cl.taken, cl.lent = true, true
	}
	return true, nil
}

// waitsForShare reports whether the limits of a shared scope deny a large call, and so does a share, for longer, or
// because the call is larger than the share. Others have their turns until the share admits it: the scope's limits do
// not gather for it before.
func (c *claim) waitsForShare(o *Outcome, now int64) bool {
	of, s := c.said.Quota, o.Of(c.scope)
	if c.scope.Kind != Shared || !c.said.Large || !s.denies() {
		return false
	}
	rough := c.rules.Limits[c.limits[of]].Limit.Period() / 60 // how exactly a pool knows when a share admits a call
	return c.said.Share < c.room[of].N || time.Duration(c.said.Until-now)-rough > s.Wait(SlotGuess)
}

// takeCounted is takeStore of a call that its shares admit, as far as this process knows. If others
// share the store, the store also counts what each member uses, and the call is denied after all if
// that is more than this process knew of.
func (e *Engine) takeCounted(ctx context.Context, c *Call, o *Outcome, all claims, now int64) (*Reservation, error) {
	f := e.join()
	if f == nil {
		return e.takeStore(ctx, c, o, all)
	}
	var counters [mostClaims]*Scope
	for i := range all {
		cl := &all[i]
		if cl.lent || cl.pool.Alone() {
			continue
		}
		var err error
		if counters[i], err = cl.counter(e); err != nil {
			return nil, err
		}
		if counters[i] != nil {
			o.also(counters[i], c.part)
		}
	}
	res, err := e.takeStore(ctx, c, o, all)
	for i := range all {
		if res != nil || !c.again { // that a call asks again is no news: other processes know that it waits
			f.changed(all[i].scope, all[i].sharing)
		}
	}
	if res == nil {
		return nil, err
	}
	for i, counter := range counters {
		if counter == nil {
			continue
		}
		cl := &all[i]
		var room [mostShared]int64
		if d := cl.pool.Confirm(cl.member, now, cl.amounts(), cl.counted(o, counter, room[:0])); d.Denied {
			res.giveBack()
			cl.deny(o, d, now)
			o.counted = true
			return nil, nil
		}
	}
	return res, nil
}

// peekShares enters the denial of a share into the outcome of a Peek, if all limits admit the call or it waits for a
// share all the same.
func (e *Engine) peekShares(c *Call, o *Outcome) {
	in, own := o.pools(e, c, true)
	if in == 0 {
		return
	}
	now := e.clock()
	var room [mostClaims]claim
	all := o.claims(c, in, own, room[:0])
	for i := range all {
		cl := &all[i]
		var room [mostShared]int64
		denies := false
		if o.Denied {
			cl.said = cl.pool.Peek(cl.member, now, cl.amounts())
			denies = cl.waitsForShare(o, now)
		} else {
			cl.said = cl.pool.StillDenies(cl.member, now, cl.amounts(), cl.used(o, room[:0]))
			denies = cl.said.Denied
		}
		if denies {
			cl.deny(o, cl.said, now)
			return
		}
	}
}

// correctShares corrects what the call has taken of its flow's shares to what it has used, and gives back what it holds.
func (r *Reservation) correctShares(used *spent) {
	r.eachShare(func(p *plan, d *sharing, taken []fair.Amount) { d.correct(p, r.member, r.at, &r.asked, used, taken) })
}

// releaseShares gives back what the call holds of its flow's shares.
func (r *Reservation) releaseShares() {
	r.eachShare(func(_ *plan, d *sharing, taken []fair.Amount) { d.pool.Release(r.at, taken) })
}

// eachShare calls do for each pool in which what the call has taken counts, with what was charged there. That is nil if it
// is what the call asked for.
func (r *Reservation) eachShare(do func(p *plan, d *sharing, taken []fair.Amount)) {
	taken := r.taken
	for rest := r.pools; rest != 0; rest &= rest - 1 {
		p := r.charged[bits.TrailingZeros32(rest)].plan
		d := p.rules.sharing.Load()
		if n := len(d.limits); taken == nil {
			do(p, d, nil)
		} else {
			do(p, d, taken[:n])
			taken = taken[n:]
		}
		if f := r.engine.fleet.Load(); f != nil && d.held {
			f.changed(p.scope, d)
		}
	}
}

// correct corrects what a member has taken by a plan at a time to what it has used. taken is what was charged; nil is
// what was asked for.
func (s *sharing) correct(p *plan, member *fair.Who, at int64, asked *Ask, used *spent, taken []fair.Amount) {
	var more [mostShared]int64
	for k, place := range s.limits {
		l := &p.rules.Limits[place]
		if n := used.of(p.rules, l.Unit); n >= 0 && !p.onlyCounts(l) {
			more[k] = n - p.rules.Amount(l.Unit, asked)
		}
	}
	s.pool.Correct(member, at, more[:len(s.limits)], taken)
}
