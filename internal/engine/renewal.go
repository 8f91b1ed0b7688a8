package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// renewal keeps the slots of a call for longer than a lease: shortly before the lease ends
// it takes others. The slots that were reserved end by themselves.
type renewal struct {
	timer *time.Timer
	taken atomic.Pointer[store.Receipt] // of the slots that were taken last; nil: none but those that were reserved
}

const (
	renewBefore = 10 * time.Second // the end of a lease
	renewAgain  = time.Second      // later, if the store could not be asked
)

// anyNumber lets in any number of calls: a call that renews its slot is under way already.
var anyNumber = []limit.Limit{AtATime(Boundless)}

// Keep lets the call keep its slots until it ends, however long that takes, as long as the
// process lives.
func (r *Reservation) Keep() {
	if r.renewal != nil || len(r.slots()) == 0 {
		return
	}
	k := new(renewal)
	r.renewal = k
	k.timer = time.AfterFunc(time.Hour, func() { k.renew(r) })
	k.timer.Reset(Lease - renewBefore) // now that renew can see the timer
}

// slots returns the charges of the call's slots.
func (r *Reservation) slots() (list []store.Charge) {
	for i := range r.charged {
		p := r.charged[i].plan
		for k := range p.charges {
			if p.charges[k].unit == Slots {
				list = append(list, store.Charge{Key: p.rules.Key(Slots), Limits: anyNumber, N: 1})
			}
		}
	}
	return list
}

// renew takes slots once more, and gives back those that it took before.
func (k *renewal) renew(r *Reservation) {
	if r.ended.Load() {
		return
	}
	next, err := r.engine.takeSlots(r.slots())
	if err != nil {
		if !hopeless(err) {
			k.timer.Reset(renewAgain)
		}
		return
	}
	r.giveBackSlots(k.taken.Swap(&next))
	if r.ended.Load() { // meanwhile, and its end may not have seen the last slots
		r.giveBackSlots(k.taken.Swap(nil))
		return
	}
	k.timer.Reset(Lease - renewBefore)
}

// end gives back the slots that were taken last.
func (k *renewal) end(r *Reservation) {
	k.timer.Stop()
	r.giveBackSlots(k.taken.Swap(nil))
}

var errDenied = errors.New("ratelimit: the store denies what has no limit")

// takeSlots takes slots whatever their limits say.
func (e *Engine) takeSlots(list []store.Charge) (store.Receipt, error) {
	if e.closed.Load() {
		return nil, store.ErrClosed
	}
	receipt, said, err := e.store.Take(context.Background(), list)
	if err == nil && !store.Allowed(said) { // the store is lost
		err = errDenied
	}
	return receipt, err
}

func (r *Reservation) giveBackSlots(receipt *store.Receipt) {
	if receipt != nil {
		r.engine.correct(correction{receipt: *receipt, actual: make([]int64, len(r.slots()))})
	}
}
