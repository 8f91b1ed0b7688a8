package store

import (
	"context"
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// prepared is what Prepare has found out about a charge.
type prepared struct{}

// Prepare checks a key and its limits, and returns a charge of nothing that
// stores need not check again. Copies of the charge are prepared too: set N in
// a copy. Prepare keeps a copy of the limits.
func Prepare(key string, limits []limit.Limit) (Charge, error) {
	c := Charge{Key: key, Limits: slices.Clone(limits)}
	if err := Validate([]Charge{c}); err != nil {
		return Charge{}, err
	}
	c.prepared = new(prepared)
	return c, nil
}

// Hold is room for what a take needs until it is settled. It lives inside the
// caller's reservation. The zero Hold is ready for a take.
type Hold struct{ receipt Receipt }

// TakeInto is Take of prepared charges. It appends what each limit says to
// decisions, notes in h what SettleHold needs, and reports whether all limits
// allow.
func (m *Memory) TakeInto(ctx context.Context, charges []Charge, decisions []limit.Decision, h *Hold) ([]limit.Decision, bool, error) {
	if err := arePrepared(charges); err != nil {
		return decisions, false, err
	}
	r, said, err := m.Take(ctx, charges)
	h.receipt = r
	return append(decisions, said...), err == nil && r != nil, err
}

// PeekInto is Peek of prepared charges. It appends what each limit says to
// decisions, and reports whether all limits allow.
func (m *Memory) PeekInto(ctx context.Context, charges []Charge, decisions []limit.Decision) ([]limit.Decision, bool, error) {
	if err := arePrepared(charges); err != nil {
		return decisions, false, err
	}
	said, err := m.Peek(ctx, charges)
	return append(decisions, said...), err == nil && Allowed(said), err
}

// SettleHold is Settle of what TakeInto has noted in h: one amount for each
// charge, or a negative one to leave what was taken. Only the first call
// after a take does anything. It must not be called for one Hold at a time by
// several goroutines.
func (m *Memory) SettleHold(h *Hold, actual []int64) {
	m.Settle(context.Background(), h.receipt, actual)
	*h = Hold{}
}

// Put replaces what a key has used by a copy of a.
func (m *Memory) Put(key string, a *limit.Account) error {
	charges := []Charge{{Key: key}}
	var h held
	if err := h.lock(m, charges); err != nil {
		return err
	}
	defer h.unlock()
	h.open(charges)
	*h.accounts()[0] = *clone(a)
	h.keep(m.clock())
	return nil
}

func arePrepared(charges []Charge) error {
	for i := range charges {
		if charges[i].prepared == nil {
			return fmt.Errorf("%w: the charge of %q is not prepared", ErrInvalid, charges[i].Key)
		}
	}
	return nil
}
