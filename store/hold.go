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
	more *MoreHold // in place of few; nil: the take has few charges and no bucket
}

// MoreHold is room for what must be known of a take of many charges, or of buckets.
type MoreHold struct {
	room     [maxFew]limit.Mark // of each charge, or
	marks    []limit.Mark       // if there are too many of them, or
	receipts []limit.Receipt    // if any of them has a bucket
}

// HoldWith returns a hold that has room for a take of many charges, which would otherwise be allocated.
func HoldWith(room *MoreHold) Hold { return Hold{more: room} }

// IsLarge reports whether the take has needed a MoreHold.
func (h *Hold) IsLarge() bool { return h.more != nil }

// CopyTo copies the hold of a take to another one. If the hold is large, room is the room of the copy.
func (h *Hold) CopyTo(to *Hold, room *MoreHold) {
	to.at, to.few = h.at, h.few
	if h.more != nil {
		*room, to.more = *h.more, room
	}
}

// begin makes the hold ready for a take of a number of charges, some of which may be of buckets.
func (h *Hold) begin(charges int, buckets bool, at int64) {
	h.at = at
	if charges <= few && !buckets {
		if h.more != nil { // to write a pointer costs more than to compare it
			h.more = nil
		}
		return
	}
	if h.more == nil {
		h.more = new(MoreHold)
	}
	switch {
	case buckets:
		h.more.receipts = make([]limit.Receipt, charges)
	case charges > maxFew:
		h.more.marks = make([]limit.Mark, charges)
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
		*h.more.mark(i) = r.Mark
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
		r.Mark = *h.more.mark(i)
	}
}

// mark returns the mark of the i-th charge of a take without buckets.
func (m *MoreHold) mark(i int) *limit.Mark {
	if m.marks != nil {
		return &m.marks[i]
	}
	return &m.room[i]
}
