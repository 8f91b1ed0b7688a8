package redisstore

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// status is the first byte of the script's answer.
type status byte

const (
	denied  status = iota
	allowed        // or done
	unready        // an account must be prepared first: see prepare
	skewed         // the clocks differ too much; the link learns the server's time from the answer
)

// statusOf returns the status of an answer.
func statusOf(answer []byte) status {
	r := reader{rest: answer}
	return status(r.byte())
}

// takeAnswer is the answer to a take or a peek: the state that the script found.
type takeAnswer struct {
	status   status
	at       int64
	accounts []accountState // one for each charge
}

// accountState is the part of an account that a charge's limits need, before the take, with the
// epoch and revision that it has afterwards.
type accountState struct {
	charge   store.Charge
	epoch    uint64
	revision int64
	counters []counter // one for each limit
}

// counter is what was used of a limit.
type counter struct {
	limit.Counter
	log    logState // of a sliding log, in place of the Counter
	leased int64    // set aside by leases
}

// parseTake decodes the answer to a take of charges, or to a peek.
func parseTake(o *op, charges []store.Charge) (takeAnswer, error) {
	r := reader{rest: o.answer}
	t := takeAnswer{status: status(r.byte()), at: o.at}
	if t.status == unready || t.status == skewed {
		return t, r.err
	}
	t.accounts = make([]accountState, len(charges))
	for i, c := range charges {
		f := &t.accounts[i]
		*f = accountState{charge: c, epoch: r.epoch(), revision: r.float()}
		f.counters = make([]counter, len(c.Limits))
		for k, l := range c.Limits {
			if same := slices.Index(c.Limits[:k], l); same >= 0 {
				f.counters[k] = f.counters[same]
			} else {
				f.counters[k] = r.found(l)
			}
		}
	}
	return t, r.err
}

func (r *reader) found(l limit.Limit) counter {
	c := counter{Counter: limit.Counter{Limit: l}, leased: r.number()}
	switch kindOf(l) {
	case kindBucket:
		c.At, c.A, c.B, c.Refunded, c.Changes = r.number(), r.number(), r.number(), r.backlog(), r.float()
	case kindLog:
		c.log = logState{sum: r.number(), newest: r.number(), roomAt: r.number()}
	default:
		c.At, c.A, c.B = r.number(), r.number(), r.number()
	}
	return c
}

// decisions returns the decisions of all limits. Without take, the decision of a limit that allows
// has what remains now.
func (t *takeAnswer) decisions(take bool) []limit.Decision {
	n := 0
	for i := range t.accounts {
		n += len(t.accounts[i].counters)
	}
	decisions := make([]limit.Decision, 0, n)
	for i := range t.accounts {
		decisions = t.accounts[i].decide(decisions, t.at, take)
	}
	return decisions
}

// takes returns what settlements need to know about the take.
func (t *takeAnswer) takes() []*chargeReceipt {
	takes := make([]*chargeReceipt, len(t.accounts))
	for i := range t.accounts {
		takes[i] = t.accounts[i].take(t.at)
	}
	return takes
}

// decide appends the decision of each limit. Leased amounts count as used.
func (f *accountState) decide(decisions []limit.Decision, at int64, take bool) []limit.Decision {
	n := f.charge.N
	for i := range f.counters {
		c := &f.counters[i]
		d := c.check(at, n)
		if d.Allowed && c.leased > 0 {
			d = c.besideLeases(d, at, n)
		}
		if d.Allowed && !take {
			d = c.check(at, 0)
		}
		d.Used += min(c.leased, maxAmount-d.Used)
		d.Remaining = max(d.Remaining-c.leased, 0)
		decisions = append(decisions, d)
	}
	return decisions
}

// besideLeases returns the decision of a limit that allows n, if its leased amounts count as used.
func (c *counter) besideLeases(d limit.Decision, at, n int64) limit.Decision {
	retry := leaseRetry
	if burst := c.Limit.Burst(); n <= burst-c.leased {
		both := c.check(at, n+c.leased)
		if both.Allowed {
			return d
		}
		retry = max(retry, both.RetryAfter)
	}
	d = c.check(at, 0)
	d.Allowed, d.RetryAfter = false, retry
	return d
}

// leaseRetry is when to ask again for what is leased to other nodes.
const leaseRetry = 10 * time.Millisecond

// chargeReceipt is what a settlement needs to know about one charge of a take.
type chargeReceipt struct {
	limit.Receipt
	charge   store.Charge
	revision int64     // of the account, after the take
	before   []counter // one for each limit; may change
}

func (f *accountState) take(at int64) *chargeReceipt {
	n := f.charge.N
	t := &chargeReceipt{limit.Receipt{N: n, At: at, Epoch: f.epoch}, f.charge, f.revision, f.counters}
	for i := range f.counters {
		c := &f.counters[i]
		if n == 0 || c.Limit.Algorithm() > limit.LeakyBucket {
			continue
		}
		if t.Buckets == nil {
			t.Buckets = make([]limit.BucketReceipt, len(f.counters))
		}
		after := c.Take(at, n)
		t.Buckets[i] = limit.BucketReceipt{Left: limit.Backlog{NS: after.A, Parts: after.B}, Refunded: c.Refunded, Changes: c.Changes}
	}
	return t
}

// advance applies a take of n to the state, so that it is the one that the next take finds.
func (f *accountState) advance(at, n int64) {
	for i := range f.counters {
		c := &f.counters[i]
		if c.Limit.Algorithm() == limit.SlidingLog {
			c.log.sum, c.log.newest = c.log.sum+n, at
		} else {
			c.Counter = c.Take(at, n)
		}
	}
}

func (c *counter) check(at, n int64) limit.Decision {
	if c.Limit.Algorithm() == limit.SlidingLog {
		return c.log.check(c.Limit, at, n)
	}
	return c.Check(at, n)
}

// logState is what the script reports about a sliding log: the amount in its window, the time of
// the newest entry, and the time of the entry whose end leaves enough room for what was denied.
type logState struct{ sum, newest, roomAt int64 }

// check is [limit.Account.Check] for a sliding log.
func (s logState) check(l limit.Limit, at, n int64) limit.Decision {
	d := limit.Decision{Limit: l, Used: s.sum, Remaining: max(l.Count()-s.sum, 0)}
	if s.sum > 0 {
		d.ResetAfter = time.Duration(s.newest-at) + l.Period()
	}
	switch {
	case n > l.Burst():
		d.RetryAfter = limit.Never
	case n > l.Count()-s.sum:
		d.RetryAfter = time.Duration(s.roomAt-at) + l.Period()
	case n > 0:
		d.Used += n
		d.Remaining -= n
		d.ResetAfter = l.Period()
		fallthrough
	default:
		d.Allowed = true
	}
	return d
}
