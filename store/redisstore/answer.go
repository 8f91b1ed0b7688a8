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
	allowed        // also the status of a step that is done
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
	at       int64          // the server's time of the decision
	accounts []accountState // one for each charge
}

// accountState is the part of an account that a charge's limits need, as it was before the take.
type accountState struct {
	charge   store.Charge
	epoch    uint64        // after the take
	revision int64         // after the take
	limits   []limitState  // one for each limit, as the script found it
	account  limit.Account // the counters of the limits
}

// limitState is what was used of a limit.
type limitState struct {
	counterState
	log logState // of a sliding log, in place of the counterState
}

// parseTake decodes the answer to a take of charges, or to a peek.
func parseTake(answer result, charges []store.Charge) (takeAnswer, error) {
	r := reader{rest: answer.answer}
	t := takeAnswer{status: status(r.byte()), at: answer.at}
	if t.status == unready || t.status == skewed {
		return t, r.err
	}
	t.accounts = make([]accountState, len(charges))
	for i, c := range charges {
		f := &t.accounts[i]
		*f = accountState{charge: c, epoch: r.epoch(), revision: r.float()}
		f.limits = make([]limitState, len(c.Limits))
		shot := snapshot{fullAt: maxAmount, seen: answer.at, epoch: f.epoch}
		newest := int64(0)
		if slices.ContainsFunc(c.Limits, isLog) {
			newest = r.number()
		}
		for k, l := range c.Limits {
			if same := slices.Index(c.Limits[:k], l); same >= 0 {
				f.limits[k] = f.limits[same]
				continue
			}
			s := r.limitState(l, newest)
			f.limits[k] = s
			if s.counterState != (counterState{limit: l}) { // or nothing was used
				shot.counters = append(shot.counters, s.counterState)
			}
		}
		if r.err == nil && len(shot.counters) > 0 {
			r.err = shot.restore(&f.account)
		}
	}
	if t.status == denied {
		t.readRooms(&r)
	}
	return t, r.err
}

func isLog(l limit.Limit) bool { return l.Algorithm() == limit.SlidingLog }

// readRooms reads when there is room in each log, which only a denial says.
func (t *takeAnswer) readRooms(r *reader) {
	for i := range t.accounts {
		f := &t.accounts[i]
		for k, l := range f.charge.Limits {
			if !isLog(l) {
				continue
			}
			if same := slices.Index(f.charge.Limits[:k], l); same >= 0 {
				f.limits[k] = f.limits[same]
			} else {
				f.limits[k].log.roomAt = r.number()
			}
		}
	}
}

// limitState reads the state of a limit. newest is the time of the newest entry of the account's log.
func (r *reader) limitState(l limit.Limit, newest int64) limitState {
	s := limitState{counterState: counterState{limit: l}}
	switch kindOf(l) {
	case kindBucket:
		s.at, s.a, s.b, s.refunded, s.changes = r.number(), r.number(), r.number(), r.backlog(), r.float()
	case kindLog:
		s.log = logState{sum: r.number(), newest: newest}
	default:
		s.at, s.a, s.b = r.number(), r.number(), r.number()
	}
	return s
}

// decisions returns the decisions of all limits. If take is not set, nothing was taken, and a limit
// that allows the charge says what remains without it.
func (t *takeAnswer) decisions(take bool) []limit.Decision {
	n := 0
	for i := range t.accounts {
		n += len(t.accounts[i].limits)
	}
	decisions := make([]limit.Decision, 0, n)
	for i := range t.accounts {
		decisions = t.accounts[i].decide(decisions, t.at, take)
	}
	return decisions
}

// takes returns what settlements need to know about the takes, after the decisions were made.
func (t *takeAnswer) takes() []*chargeReceipt {
	takes := make([]*chargeReceipt, len(t.accounts))
	for i := range t.accounts {
		takes[i] = t.accounts[i].take(t.at)
	}
	return takes
}

// decide appends the decision of each limit.
func (f *accountState) decide(decisions []limit.Decision, at int64, take bool) []limit.Decision {
	n := f.charge.N
	for i := range f.limits {
		d := f.check(i, at, n)
		if d.Allowed && !take {
			d = f.check(i, at, 0)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// chargeReceipt is what a settlement needs to know about one charge of a take.
type chargeReceipt struct {
	limit.Receipt
	charge   store.Charge
	revision int64        // of the account, after the take
	before   []limitState // one for each limit
}

// take returns what a settlement needs to know about the take. For buckets that includes what the take
// leaves behind, so it is applied to the account.
func (f *accountState) take(at int64) *chargeReceipt {
	n := f.charge.N
	t := &chargeReceipt{limit.Receipt{N: n, At: at, Mark: limit.Mark{Epoch: f.epoch}}, f.charge, f.revision, f.limits}
	if n > 0 && slices.ContainsFunc(f.charge.Limits, isBucket) {
		t.Receipt = f.account.Take(f.charge.Limits, at, n)
		t.Epoch = f.epoch
	}
	return t
}

// check returns the decision of the limit at an index on n.
func (f *accountState) check(i int, at, n int64) limit.Decision {
	s := &f.limits[i]
	if s.limit.Algorithm() != limit.SlidingLog {
		return f.account.Check(s.limit, at, n)
	}
	return s.log.check(s.limit, at, n)
}

// logState is what the script reports about a sliding log: the amount in its window, the time of the
// newest entry, and the time of the entry that must leave the window before what was denied can pass.
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
