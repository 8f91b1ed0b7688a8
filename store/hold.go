package store

import "dappco.re/go/core/go-ratelimit/limit"

// few is how many charges most takes have at most.
const few = 4

// maxFew is how many charges nearly all takes have at most.
const maxFew = 12

// Amount is how much is taken of a prepared charge. The charge's own N does not count.
type Amount struct {
	Of *Charge
	N  int64
}

// Hold is what [Memory.SettleHold] must know of a take. It lives in the caller's reservation. The zero
// Hold is ready for use.
type Hold struct {
	at       int64            // when the take was made
	marks    []limit.Mark     // of each charge, or
	receipts *[]limit.Receipt // if any of them has a bucket
}

// HoldIn returns a hold that allocates nothing for as many charges as there is room for, unless they are
// of buckets.
func HoldIn(room []limit.Mark) Hold { return Hold{marks: room} }

// Len returns how many charges the take has, without those of takes that have a bucket.
func (h *Hold) Len() int { return len(h.marks) }

// CopyTo copies the hold of a take to an empty one, and its marks to room if that is large enough.
func (h *Hold) CopyTo(to *Hold, room []limit.Mark) {
	to.at, to.marks = h.at, append(room[:0], h.marks...)
	if h.receipts != nil {
		receipts := *h.receipts // a pointer to them of its own, so that room on a stack can stay there
		to.receipts = &receipts
	}
}

// begin makes the hold ready for a take of a number of charges, some of which may be of buckets.
func (h *Hold) begin(charges int, buckets bool, at int64) {
	h.at = at
	if h.receipts != nil { // to write a pointer costs more than to compare it
		h.receipts = nil
	}
	switch {
	case buckets:
		receipts := make([]limit.Receipt, charges)
		h.receipts, charges = &receipts, 0
	case charges > cap(h.marks):
		h.marks = make([]limit.Mark, charges)
	}
	h.marks = h.marks[:charges]
}

// keep keeps the receipt of the i-th charge.
func (h *Hold) keep(i int, r *limit.Receipt) {
	if h.receipts != nil {
		(*h.receipts)[i] = *r
	} else {
		h.marks[i] = r.Mark
	}
}

// receipt fills in r, which is empty, with the receipt of the i-th charge, which has taken n.
func (h *Hold) receipt(i int, n int64, r *limit.Receipt) {
	if h.receipts != nil {
		*r = (*h.receipts)[i]
	} else {
		r.N, r.At, r.Mark = n, h.at, h.marks[i]
	}
}
