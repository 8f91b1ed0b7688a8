package ratelimit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// keeping is how a reservation keeps its places among the concurrent calls: shortly
// before their lease ends it takes others. Those that were reserved end by themselves.
type keeping struct {
	timer *time.Timer
	place atomic.Pointer[place] // nil: none but those that were reserved
}

// place is a call's among those of its model and of its project.
type place struct {
	receipt store.Receipt // nil: it has none in a store
	memory  bool          // it has one in the model's usage:
	at      int64         // when it was taken,
	epoch   int32         // and of which
}

const (
	early    = 10 * time.Second // before a lease ends, others are taken
	askAgain = time.Second      // later, if the store could not be asked
)

// crowd lets in any number at a time: who keeps a place is under way already.
var crowd = []limit.Limit{atATime(boundless)}

// Keep lets the call keep its places among the concurrent ones until it ends, however
// long that takes, as long as the process lives. Use it for calls that may take longer
// than ten minutes, and end them for certain.
func (r *Reservation) Keep() {
	if r == nil || r.keeping != nil || !r.placed() {
		return
	}
	k := new(keeping)
	r.keeping = k
	k.timer = time.AfterFunc(time.Hour, func() { k.renew(r) })
	k.timer.Reset(lease - early) // now that renew can see the timer
}

// placed reports whether the call has a place among concurrent ones.
func (r *Reservation) placed() bool {
	return r.taken[ofSlots] > 0 || r.noted != nil && r.noted.limits != nil && r.noted.limits.MaxConcurrent > 0
}

// renew takes other places, and gives back those that it took before.
func (k *keeping) renew(r *Reservation) {
	if r.ended.Load() {
		return
	}
	rl := r.model.limiter
	next, err := rl.place(r)
	if err != nil {
		if !hopeless(err) {
			k.timer.Reset(askAgain)
		}
		return
	}
	rl.leave(r, k.place.Swap(next))
	if r.ended.Load() { // meanwhile, and it may not have seen the last
		rl.leave(r, k.place.Swap(nil))
		return
	}
	k.timer.Reset(lease - early)
}

// end gives back what was taken since.
func (k *keeping) end(r *Reservation) {
	k.timer.Stop()
	r.model.limiter.leave(r, k.place.Swap(nil))
}

var errDenied = errors.New("ratelimit: the store denies what has no limit")

// place takes a call's places once more, whatever its limits say.
func (rl *RateLimiter) place(r *Reservation) (*place, error) {
	if rl.projects.closed.Load() {
		return nil, store.ErrClosed
	}
	p := new(place)
	if list := r.places(); len(list) > 0 {
		receipt, decisions, err := rl.projects.store.Take(context.Background(), list)
		if err != nil {
			return nil, err
		}
		if !store.Allowed(decisions) { // it is lost
			return nil, errDenied
		}
		p.receipt = receipt
	}
	if rl.shared == nil && r.taken[ofSlots] > 0 {
		p.memory = true
		p.at, p.epoch = r.model.place(rl.clock())
	}
	return p, nil
}

// places returns what the call's places are charged to in a store.
func (r *Reservation) places() (list []store.Charge) {
	if r.noted == nil {
		return nil
	}
	for _, c := range r.noted.rules.charged {
		if c.unit == ofSlots {
			list = append(list, store.Charge{Key: key(r.model.name, ofSlots), Limits: crowd, N: 1})
		}
	}
	if l := r.noted.limits; l != nil && l.MaxConcurrent > 0 {
		list = append(list, store.Charge{Key: projectKey(r.project) + unitNames[ofSlots], Limits: crowd, N: 1})
	}
	return list
}

// leave gives back places. nil is none.
func (rl *RateLimiter) leave(r *Reservation, p *place) {
	if p == nil {
		return
	}
	if p.receipt != nil {
		rl.projects.make(correction{p.receipt, make([]int64, len(r.places()))})
	}
	if p.memory {
		r.model.leave(p)
	}
}

// place takes a place in memory, whatever the rules say.
func (m *model) place(clock int64) (at int64, epoch int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now(clock)
	m.usage.slots.Take(crowd, now, 1)
	return now, m.epoch
}

func (m *model) leave(p *place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.epoch == m.epoch {
		m.usage.slots.Settle(crowd, limit.Receipt{N: 1, At: p.at}, m.last, 0)
	}
}
