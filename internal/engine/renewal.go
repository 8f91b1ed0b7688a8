package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

const (
	// Lease is for how long a call has its slots, unless it keeps them. In memory, the slots of a call that never
	// ends are free after that.
	Lease = 10 * time.Minute

	// sharedLease is for how long a call has slots in a store that other processes use, unless they are renewed: so the
	// slots of a process that has died are free after that. Slots of calls under way are renewed every renewEvery, so
	// that a process which is held up for some seconds keeps them.
	sharedLease = 12 * time.Second
	renewEvery  = 4 * time.Second

	renewBefore = 10 * time.Second // the end of a whole Lease
	renewAgain  = time.Second      // later, if the store could not be asked
)

// renewal keeps the slots of a call for longer than the store's lease: before that ends, the call takes them once more.
type renewal struct {
	every  time.Duration // how often
	resets []uint32      // of the scopes that the call was charged to, when it was

	mu    sync.Mutex
	timer *time.Timer
	until int64 // when the slots end, by the engine's clock; 0: with the call
	ended bool  // the call has
	moved bool  // the call's own receipt has its slots no more, or they are just being renewed
	slots slots // that the call has in place of these, or beside them
}

// slots are the slots at some places of a receipt.
type slots struct {
	receipt store.Receipt // nil: there are none
	places  []int
	own     bool // the receipt is the call's own
}

// Keep lets the call keep its slots until it ends, however long that takes, as long as the
// process lives.
func (r *Reservation) Keep() {
	if !r.hasSlots() {
		return
	}
	if r.renewal == nil {
		r.renewSlots(Lease - renewBefore)
	}
	r.renewal.mu.Lock()
	r.renewal.until = 0
	r.renewal.mu.Unlock()
}

// renewSlots lets the slots of the call be renewed every so often.
func (r *Reservation) renewSlots(every time.Duration) {
	k := &renewal{every: every, until: r.engine.clock() + int64(Lease), resets: make([]uint32, len(r.charged))}
	for i := range r.charged {
		k.resets[i] = r.charged[i].plan.scope.Real().resets.Load()
	}
	r.renewal = k
	k.mu.Lock()
	k.timer = time.AfterFunc(every, func() { k.renew(r) })
	k.mu.Unlock()
}

// hasSlots reports whether the call has slots.
func (r *Reservation) hasSlots() bool {
	for i := range r.charged {
		if p := r.charged[i].plan; p.hasSlots() {
			return true
		}
	}
	return false
}

// hasSlots reports whether a call that is charged by the plan has a slot of its scope.
func (p *plan) hasSlots() bool { return p.rules != nil && p.rules.slots && p == &p.rules.plans[Whole] }

// charges returns charges of the call's slots, under limits that deny nothing: a call that renews its slots is under way
// already. Slots of scopes that were reset since are forgotten. places are those of the slots among the call's charges.
func (k *renewal) charges(r *Reservation) (list []store.Charge, places []int) {
	place := 0
	for i := range r.charged {
		p := r.charged[i].plan
		reset := p.scope.Real().resets.Load() != k.resets[i]
		for j := range p.charges {
			if c := &p.charges[j]; c.unit.InFlight() && !reset {
				list = append(list, store.Charge{Key: c.Key, Limits: []limit.Limit{boundless(c.Limits[0])}, N: p.rules.Amount(c.unit, &r.asked)})
				places = append(places, place)
			}
			place++
		}
		place += len(r.charged[i].holds())
	}
	return list, places
}

// renew takes the call's slots once more, and gives back those that it had. A store that cannot do both in one step counts
// those of the call's own receipt until they end by themselves.
func (k *renewal) renew(r *Reservation) {
	e := r.engine
	list, places := k.charges(r)
	had, ok := k.begin(r, places)
	if !ok || len(list) == 0 {
		return
	}
	var next store.Receipt
	var err error
	if e.renewer != nil && len(had.places) == len(list) {
		next, err = e.renewer.Renew(context.Background(), had.receipt, had.places)
	}
	inOneStep := next != nil
	if next == nil && err == nil {
		next, err = e.takeSlots(list)
	}
	stays := had.own && !inOneStep // with the call's own receipt
	if stays {
		had = slots{}
	}
	has := had
	if err == nil {
		has = slots{receipt: next, places: first(len(list))}
	}
	if err == nil && !inOneStep {
		e.giveBackSlots(had)
	}
	e.giveBackSlots(k.conclude(has, stays, err))
}

// begin returns the slots that are to be renewed, and whether any are. Until conclude, nobody else gives them back.
func (k *renewal) begin(r *Reservation, places []int) (had slots, ok bool) {
	e := r.engine
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended || r.ended.Load() || e.closed.Load() || k.until != 0 && e.clock()+int64(e.lease) > k.until {
		return slots{}, false
	}
	had, k.slots = k.slots, slots{}
	if had.receipt == nil && e.renewer != nil {
		had, k.moved = slots{r.receipt, places, true}, true
	}
	return had, true
}

// conclude notes the slots that the call has now; stays says that it still has those of its own receipt, and err why they
// were not renewed. If the call has ended meanwhile, conclude returns its slots, to be given back.
func (k *renewal) conclude(has slots, stays bool, err error) slots {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return has
	}
	k.slots, k.moved = has, k.moved && !stays
	switch {
	case err == nil:
		k.timer.Reset(k.every)
	case !hopeless(err):
		k.timer.Reset(renewAgain)
	}
	return slots{}
}

// end gives back the slots that the call has beside those of its own receipt.
func (k *renewal) end(r *Reservation) {
	k.mu.Lock()
	k.ended = true
	k.timer.Stop()
	has := k.slots
	k.mu.Unlock()
	r.engine.giveBackSlots(has)
}

// endSlots ends the renewal of the call's slots.
func (r *Reservation) endSlots() {
	if r.renewal != nil {
		r.renewal.end(r)
	}
}

// slotsMoved reports whether the receipt of a call that has ended has its slots no more.
func (r *Reservation) slotsMoved() bool { return r.renewal != nil && r.renewal.moved }

// first returns the first n places.
func first(n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	return places
}

var errDenied = errors.New("ratelimit: the store denies what has no limit")

// takeSlots takes slots whatever their limits say.
func (e *Engine) takeSlots(list []store.Charge) (store.Receipt, error) {
	receipt, said, err := e.store.Take(context.Background(), list)
	if err == nil && !store.Allowed(said) { // the store is lost
		err = errDenied
	}
	return receipt, err
}

func (e *Engine) giveBackSlots(s slots) {
	if s.receipt != nil {
		e.correct(correction{receipt: s.receipt, actual: make([]int64, len(s.places))})
	}
}
