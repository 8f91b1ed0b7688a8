package limit

import "sync/atomic"

// Reservation is what a request has taken before its cost is known. The caller settles it
// when the cost is known, or cancels it. Only the first call of Settle or Cancel does
// anything, so a deferred Cancel is harmless after Settle. A nil Reservation has taken
// nothing.
type Reservation struct {
	demands []demand
	claims  []*claim // one for each demand
	settled atomic.Bool
}

// add adds what a demand has taken at now. A nil Reservation is not wanted, and stays nil.
func (r *Reservation) add(d *demand, now int64) {
	if r == nil {
		return
	}
	c := &claim{hash: d.hash, limits: d.limits, receipts: d.receipts(now)}
	d.book.claims.add(c)
	r.claims = append(r.claims, c)
}

// Cancel refunds as much of what was taken as still counts.
func (r *Reservation) Cancel() { r.Settle(0) }

// Settle corrects what was taken to the actual amount: one amount for all limits, or one
// for each limiter in the order in which they were combined. A negative or missing amount
// leaves what was taken.
//
// Settle corrects the windows that the amount was taken from. What has left them is not
// refunded, since it does not count any more. What was used beyond the amount that was
// taken is a debt, which delays later requests.
func (r *Reservation) Settle(actual ...int64) {
	if r == nil || !r.settled.CompareAndSwap(false, true) {
		return
	}
	keys := lineKeysOf(r.demands)
	lockLines(keys)
	now := lockAll(r.demands, true, present)
	for i := range r.demands {
		d := &r.demands[i]
		if n := amountFor(actual, d.index); n >= 0 {
			d.settle(r.claims[i], now, n)
		}
		d.unlock()
		if l := keys[i].line(); l != nil {
			l.from = max(l.from, now) // the refund makes room from now on, not before
		}
	}
	unlockLines(keys)
	serve(keys)
}

// amountFor returns the amount of the limiter at an index, or -1 if it is missing.
func amountFor(actual []int64, index int) int64 {
	switch {
	case len(actual) == 1:
		return actual[0]
	case index < len(actual):
		return actual[index]
	}
	return -1
}
