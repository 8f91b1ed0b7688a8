package store

import "dappco.re/go/core/go-ratelimit/limit"

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
	more    *heldMore // nil unless the take has many charges or a bucket
}

// heldMore is the part of a Hold that few takes need.
type heldMore struct {
	many    []limit.Mark          // in place of few, if there are more charges
	buckets []limit.BucketReceipt // of the plans that have buckets, in order
}

// begin empties the hold for a take of so many charges.
func (h *Hold) begin(charges int, at int64) []limit.Mark {
	h.at, h.charges, h.more = at, charges, nil
	if charges > few {
		h.more = &heldMore{many: make([]limit.Mark, charges)}
	}
	return h.marks()
}

// marks returns the mark of each charge.
func (h *Hold) marks() []limit.Mark {
	if h.charges > few {
		return h.more.many
	}
	return h.few[:h.charges]
}

// addBuckets adds the receipts of a plan that has buckets, which was charged just now.
func (h *Hold) addBuckets(a *limit.Account, p *limit.Plan, n int64) {
	if h.more == nil {
		h.more = new(heldMore)
	}
	h.more.buckets = a.AppendReceipts(p, h.at, n, h.more.buckets)
}

// buckets returns the receipts of all buckets.
func (h *Hold) buckets() []limit.BucketReceipt {
	if h.more == nil {
		return nil
	}
	return h.more.buckets
}
