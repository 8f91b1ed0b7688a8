package store

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// few is how many charges most takes have at most. No memory is allocated for so many.
const few = 6

// Amount is how much is taken of a prepared charge. The charge's own N does not count.
type Amount struct {
	Of *Charge
	N  int64
}

// Hold is room for what [Memory.SettleHold] must know of a take. It lives in the
// caller's reservation. The zero Hold is ready for a take.
type Hold struct {
	at      int64 // when the take was made
	charges int   // how many the take had; 0 once it is settled
	few     [few]limit.Mark
	more    *receipts // in place of few, if the take has more charges or a bucket
}

// receipts has the receipt of each charge, and room for a few, so that these take one
// allocation.
type receipts struct {
	all  []limit.Receipt
	room [few]limit.Receipt
}

// begin empties the hold for a take.
func (h *Hold) begin(taken []Amount, at int64) {
	h.at, h.charges, h.more = at, len(taken), nil
	if len(taken) > few || slices.ContainsFunc(taken, func(a Amount) bool { return a.Of.prepared.plan.Buckets() }) {
		h.more = new(receipts)
		if h.more.all = h.more.room[:min(len(taken), few)]; len(taken) > few {
			h.more.all = make([]limit.Receipt, len(taken))
		}
	}
}

// keep keeps the receipt of the i-th charge.
func (h *Hold) keep(i int, r *limit.Receipt) {
	if h.more != nil {
		h.more.all[i] = *r
	} else {
		h.few[i] = r.Mark
	}
}

// receipt returns the receipt of the i-th charge, which has taken n.
func (h *Hold) receipt(i int, n int64) limit.Receipt {
	if h.more != nil {
		return h.more.all[i]
	}
	return limit.Receipt{N: n, At: h.at, Mark: h.few[i]}
}
