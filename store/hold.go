package store

import "dappco.re/go/core/go-ratelimit/limit"

// few is how many charges most takes have at most. No memory is allocated for so many.
const few = 6

// Hold is room for what [Memory.SettleHold] must know of a take. It lives in the
// caller's reservation. The zero Hold is ready for a take.
type Hold struct {
	at      int64 // when the take was made
	charges int   // how many the take had; 0 once it is settled
	few     [few]held
	many    []held                // in place of few, if there are more charges
	buckets []limit.BucketReceipt // of the plans that have buckets, in order
}

// held is what one charge of a take has taken.
type held struct {
	*prepared
	limit.Mark
}

// begin empties the hold for a take of so many charges.
func (h *Hold) begin(charges int, at int64) []held {
	h.at, h.charges, h.buckets = at, charges, nil
	if charges > few {
		h.many = make([]held, charges)
	}
	return h.held()
}

func (h *Hold) held() []held {
	if h.charges > few {
		return h.many
	}
	return h.few[:h.charges]
}

// changes reports whether a settlement as actual changes what was taken.
func (h *held) changes(actual int64) bool { return actual >= 0 && actual != h.N }
