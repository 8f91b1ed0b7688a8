package store

import "dappco.re/go/core/go-ratelimit/limit"

// few is how many charges most takes have at most. No memory is allocated for so many.
const few = 4

// maxFew is how many charges nearly all takes have at most.
const maxFew = 12

// Amount is how much is taken of a prepared charge. The charge's own N does not count.
type Amount struct {
	Of *Charge
	N  int64
}

// Hold is room for what [Memory.SettleHold] must know of a take. It lives in the
// caller's reservation.
type Hold struct {
	at   int64 // when the take was made
	few  [few]limit.Mark
	more *heldMore // in place of few; nil: the take has few charges and no bucket
}

// heldMore is what must be known of a take of many charges, or of buckets.
type heldMore struct {
	marks    []limit.Mark    // of each charge, or
	receipts []limit.Receipt // if any of them has a bucket
	room     [maxFew]limit.Mark
}

// begin makes the hold ready for a take of a number of charges, some of which may be of buckets.
func (h *Hold) begin(charges int, buckets bool, at int64) {
	h.at = at
	switch {
	case buckets:
		h.more = &heldMore{receipts: make([]limit.Receipt, charges)}
	case charges > few:
		h.more = new(heldMore)
		if h.more.marks = h.more.room[:]; charges > len(h.more.room) {
			h.more.marks = make([]limit.Mark, charges)
		}
	case h.more != nil: // to write a pointer costs more than to compare it
		h.more = nil
	}
}

// keep keeps the receipt of the i-th charge.
func (h *Hold) keep(i int, r *limit.Receipt) {
	switch {
	case h.more == nil:
		h.few[i] = r.Mark
	case h.more.receipts != nil:
		h.more.receipts[i] = *r
	default:
		h.more.marks[i] = r.Mark
	}
}

// receipt fills in r, which is empty, with the receipt of the i-th charge, which has taken n.
func (h *Hold) receipt(i int, n int64, r *limit.Receipt) {
	r.N, r.At = n, h.at
	switch {
	case h.more == nil:
		r.Mark = h.few[i]
	case h.more.receipts != nil:
		*r = h.more.receipts[i]
	default:
		r.Mark = h.more.marks[i]
	}
}
