package limit

import (
	"sync/atomic"
	"time"
)

// Purse is an [Account] in little room, for a store that holds many. Most keys
// are charged once and never seen again, so of one charge of sliding logs it
// notes no more than the charge, and makes an account of it when it is needed:
// the one that it would have been. The zero Purse has used nothing.
type Purse struct {
	account *Account // nil while there is none, or once stands for it

	once once
}

// once is what the first charge of sliding logs leaves behind. The zero once is
// none.
type once struct {
	at, n int64
	epoch uint64
	spans *spans
}

// Account returns the account, which the purse holds from then on.
func (p *Purse) Account() *Account {
	if p.account == nil {
		*p = Purse{account: p.once.account()}
	}
	return p.account
}

// FullAt returns from when on nothing is in use, as [Account.FullAt] does.
func (p *Purse) FullAt() int64 {
	switch {
	case p.account != nil:
		return p.account.FullAt()
	case p.once.spans != nil:
		return max(p.once.at+p.once.spans.longest, 0)
	default:
		return 0
	}
}

// Spend is the whole decision where no other key takes part: it asks every limit
// and charges n to all of them, or none if one denies it. It appends what each
// says to decisions. Where nothing is taken, those that allow say what remains
// now.
func (p *Purse) Spend(limits []Limit, now, n int64, decisions []Decision) []Decision {
	switch inUse := now < p.FullAt(); {
	case inUse:
	case logs(limits):
		return p.begin(limits, now, n, decisions)
	case p.account != nil:
		*p.account = Account{counters: counters{each: p.account.counters.each[:0]}} // whose room is needed again
	default:
		*p = Purse{}
	}
	return p.Account().spend(limits, now, n, decisions)
}

// begin is Spend of sliding logs where nothing is in use.
func (p *Purse) begin(limits []Limit, now, n int64, decisions []Decision) []Decision {
	*p = Purse{}
	var unused Account
	decisions, allowed := unused.ask(limits, now, n, decisions)
	if allowed && n > 0 {
		p.once = once{now, n, newEpoch(), spansOf(limits)}
	}
	return decisions
}

// account returns the account that a charge has left behind.
func (o *once) account() *Account {
	if o.spans == nil {
		return new(Account)
	}
	a := &Account{seen: o.at, epoch: o.epoch}
	h := newHistory(o.at - 1)
	for _, period := range o.spans.periods {
		h.window(period, o.at)
	}
	h.add(o.at, o.n)
	a.counters.log, a.counters.fullAt = h, max(h.fullAt(), 0)
	return a
}

// logs reports whether there are limits, and all are sliding logs.
func logs(limits []Limit) bool {
	for i := range limits {
		if limits[i].algorithm != SlidingLog {
			return false
		}
	}
	return len(limits) > 0
}

// spans is how long each of some limits looks back.
type spans struct {
	periods []time.Duration
	longest int64
}

// knownSpans are some that are in use, so that keys with the same limits share
// theirs. They are found by what they hash to, and the latest stays.
var knownSpans [16]atomic.Pointer[spans]

// spansOf returns the spans of limits.
func spansOf(limits []Limit) *spans {
	hash := uint64(0)
	for i := range limits {
		hash = (hash ^ uint64(limits[i].period)) * 0x9e3779b97f4a7c15
	}
	place := &knownSpans[hash>>60]
	if s := place.Load(); s != nil && s.are(limits) {
		return s
	}
	s := &spans{periods: make([]time.Duration, len(limits))}
	for i := range limits {
		s.periods[i] = limits[i].period
		s.longest = max(s.longest, int64(limits[i].period))
	}
	place.Store(s)
	return s
}

// are reports whether s is that of limits.
func (s *spans) are(limits []Limit) bool {
	if len(s.periods) != len(limits) {
		return false
	}
	for i := range limits {
		if s.periods[i] != limits[i].period {
			return false
		}
	}
	return true
}
