package redisstore

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// status is how the script answers.
type status byte

const (
	denied  status = iota
	allowed        // or done
	unready        // an account must be made ready first: see prepare
	far            // the clocks are too far apart; by the answer the link knows
)

// taken is what must be known to settle one charge of a take.
type taken struct {
	limit.Receipt
	charge   store.Charge
	revision int64 // of the account, after it
	leased   int64 // set aside by others: see lease
}

// told is the answer to a take or a peek.
type told struct {
	status    status
	decisions []limit.Decision
	takes     []*taken // unless it was denied, or a peek
}

// hear reads the answer to a take of charges, or to a peek.
func hear(o *op, step byte, charges []store.Charge) (told, error) {
	r := reader{rest: o.answer}
	t := told{status: status(r.byte())}
	if t.status == unready || t.status == far {
		return t, r.err
	}
	take := (step == toTake || step == toEnd) && t.status == allowed
	for _, c := range charges {
		each := &taken{Receipt: limit.Receipt{At: o.at, Epoch: r.epoch()}, charge: c, revision: r.float()}
		each.leased = r.number()
		if take {
			each.N = c.N
			t.takes = append(t.takes, each)
		}
		first := len(t.decisions)
		for k, l := range c.Limits {
			if same := slices.Index(c.Limits[:k], l); same >= 0 {
				t.decisions = append(t.decisions, t.decisions[first+same])
				continue
			}
			t.decisions = append(t.decisions, each.hear(&r, k, take))
		}
	}
	return t, r.err
}

// hear reads what one of the limits says. A limit that allows what is not taken
// says what remains without it. What is leased counts as used.
func (t *taken) hear(r *reader, k int, take bool) limit.Decision {
	l, n := t.charge.Limits[k], t.charge.N
	check := t.reads(r, k, take)
	d := check(n)
	if t.leased > 0 && n > 0 && n <= l.Burst() {
		if d = check(min(n+t.leased, l.Burst())); !d.Allowed || n+t.leased > l.Burst() {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, leaseGuess)
		} else {
			d = check(n)
		}
	}
	if d.Allowed && !take {
		d = check(0)
	}
	d.Limit, d.Remaining = l, max(d.Remaining-t.leased, 0)
	return d
}

// leaseGuess is when to ask again for what is leased to others.
const leaseGuess = 10 * time.Millisecond

// reads reads the state of a limit's counter before the take, and returns what
// it says to an amount.
func (t *taken) reads(r *reader, k int, take bool) func(n int64) limit.Decision {
	l := t.charge.Limits[k]
	switch kindOf(l) {
	case aBucket:
		had, refunded, changes := r.backlog(), r.backlog(), r.float()
		if take && t.N > 0 {
			if t.Buckets == nil {
				t.Buckets = make([]limit.BucketReceipt, len(t.charge.Limits))
			}
			t.Buckets[k] = limit.BucketReceipt{Left: l.After(had, t.N), Refunded: refunded, Changes: changes}
		}
		c := limit.Counter{Limit: l, At: t.At, A: had.NS, B: had.Parts}
		return func(n int64) limit.Decision { return c.Check(t.At, n) }
	case aLog:
		s := logged{sum: r.number(), newest: r.number(), enough: r.number()}
		return func(n int64) limit.Decision { return s.check(l, t.At, n) }
	default:
		c := limit.Counter{Limit: l, At: r.number(), A: r.number(), B: r.number()}
		return func(n int64) limit.Decision { return c.Check(t.At, n) }
	}
}

// logged is what the script tells of a sliding log: what is in its window, when
// the newest entry was made, and which of them, once it has left, leaves room
// for what was denied.
type logged struct{ sum, newest, enough int64 }

// check says what a sliding log says: see [limit.Account.Check].
func (s logged) check(l limit.Limit, at, n int64) limit.Decision {
	d := limit.Decision{Remaining: max(l.Count()-s.sum, 0)}
	if s.sum > 0 {
		d.ResetAfter = time.Duration(s.newest-at) + l.Period()
	}
	switch {
	case n > l.Burst():
		d.RetryAfter = limit.Never
	case n > d.Remaining:
		d.RetryAfter = time.Duration(s.enough-at) + l.Period()
	case n > 0:
		d.Remaining -= n
		d.ResetAfter = l.Period()
		fallthrough
	default:
		d.Allowed = true
	}
	return d
}
