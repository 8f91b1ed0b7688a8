package limit

import "sync/atomic"

// Reservation is what a request has taken before it is known what it costs.
// Settle it with the cost once that is known, or Cancel it. The first of these
// calls counts, and others do nothing; so a deferred Cancel is harmless after
// Settle. A nil Reservation is one that took nothing.
type Reservation struct {
	demands []demand
	claims  []*claim // one for each demand
	settled atomic.Bool
}

// enter notes what a demand has taken at now.
func (r *Reservation) enter(d *demand, now int64) {
	if r == nil {
		return
	}
	c := &claim{hash: d.hash, limits: d.limits, receipts: d.receipts(now)}
	d.book.claims.add(c)
	r.claims = append(r.claims, c)
}

// Cancel gives back what was taken, as far as it is still held.
func (r *Reservation) Cancel() { r.Settle(0) }

// Settle corrects what was taken to what was used: one amount for all limits,
// or one for each limiter in the order in which they were combined. A negative
// amount, or none, leaves what was taken.
//
// It corrects the windows that it was taken from. What has left them is not
// given back, since it hinders nobody any more. What was used beyond what was
// taken is a debt, which delays what comes next.
func (r *Reservation) Settle(actual ...int64) {
	if r == nil || !r.settled.CompareAndSwap(false, true) {
		return
	}
	places := placesOf(r.demands)
	lockLines(places)
	now := lockAll(r.demands, true, present)
	for i := range r.demands {
		d := &r.demands[i]
		if n := amountFor(actual, d.index); n >= 0 {
			d.settle(r.claims[i], now, n)
		}
		d.unlock()
		if l := places[i].line(); l != nil {
			l.from = max(l.from, now) // what was refunded was not there before
		}
	}
	unlockLines(places)
	serve(places)
}

// amountFor returns which of the amounts is meant for a limiter, or -1.
func amountFor(actual []int64, index int) int64 {
	switch {
	case len(actual) == 1:
		return actual[0]
	case index < len(actual):
		return actual[index]
	}
	return -1
}
