package store

import "dappco.re/go/core/go-ratelimit/limit"

// few is as many charges as most takes have, for which no memory is allocated.
const few = 6

// Hold is room for what a take needs until it is settled. It lives inside the
// caller's reservation. The zero Hold is ready for a take.
type Hold struct {
	at      int64 // when it was taken
	charges int   // 0 once it was settled
	few     [few]held
	many    []held                // of all charges, if they are more than a few
	buckets []limit.BucketReceipt // of the charges that have buckets, one after another
}

// held is what one charge of a take needs until it is settled.
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
