package ratelimit

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// usage is what was used of a model. It has no clock and no lock; times are Unix
// nanoseconds, and never go back.
type usage struct {
	minute minute
	days   [2]day // of requests, and of tokens
	slots  limit.Account
}

// look says in o, which is empty, what the rules say to asking for so much. It
// takes nothing.
func (u *usage) look(r *rules, now int64, ask *amounts, o *outcome) {
	u.minute.slide(now - r.quota.minute())
	o.rules, o.at = r, now
	o.used[rpm], o.used[tpm] = u.minute.sum[ofRequests], u.minute.sum[ofTokens]
	o.used[inputTPM], o.used[outputTPM] = u.minute.sum[ofInput], u.minute.sum[ofOutput]
	today := u.days[ofRequests].at(now)
	o.used[rpd], o.dayStart = today.used, today.start
	o.used[tpd] = u.days[ofTokens].at(now).used
	if r.max[concurrent] > 0 {
		o.used[concurrent] = u.slots.Check(r.slots, now, 0).Used
	}
	for i := range r.limited {
		most := &r.limited[i]
		n := ask[most.unit]
		if excess := o.used[most.dim] + n - most.max; excess > 0 {
			o.deny(most.dim, u.retry(r, most.dim, n, o.used[most.dim], excess, now))
		}
	}
}

// ever says what the rules and the limits of a project say if nothing is used.
func (r *rules) ever(ask *amounts, limits *ProjectLimits) (o outcome) {
	new(usage).look(r, 0, ask, &o)
	limits.ever(ask, &o)
	return o
}

// retry returns when a dimension lets n pass, of which so much is too much now.
func (u *usage) retry(r *rules, d dimension, n, used, excess, now int64) time.Duration {
	if n > r.max[d] {
		return Never
	}
	if r.missing != nil && r.missing.n[d] > 0 {
		return u.retryWithout(r, d, n, used, now)
	}
	switch {
	case d.ofDay():
		return time.Duration(u.days[facts[d].unit].end - now)
	case d == concurrent:
		return u.slots.Check(r.slots, now, n).RetryAfter
	default:
		return u.minute.retry(facts[d].unit, excess, now-r.quota.minute())
	}
}

// take takes what is asked for, once look has said in o that it may pass.
func (u *usage) take(r *rules, ask *amounts, o *outcome) {
	now := o.at
	o.taken = *ask
	u.minute.add(now, counts(ask[:ofSlots]))
	for unit := range u.days {
		u.days[unit].add(r.day, now, ask[unit])
	}
	if r.max[concurrent] > 0 {
		u.slots.Take([]limit.Limit{r.slots}, now, ask[ofSlots])
	}
	o.dayStart = u.days[ofRequests].start
}

// settle corrects what was taken at a time to what was used.
func (u *usage) settle(r *rules, taken *amounts, at, now int64, used *amounts) {
	var more counts
	for i := range more {
		more[i] = used[i] - taken[i]
	}
	u.minute.settle(at, now-r.quota.minute(), &more)
	for unit := range u.days {
		u.days[unit].settle(r.day, at, taken[unit], used[unit])
	}
	if taken[ofSlots] > 0 {
		u.slots.Settle([]limit.Limit{r.slots}, limit.Receipt{N: taken[ofSlots], At: at}, now, used[ofSlots])
	}
}

// record charges what was used at now, whatever the rules say.
func (u *usage) record(r *rules, now int64, used *amounts) {
	u.minute.slide(now - r.quota.minute())
	u.minute.add(now, counts(used[:ofSlots]))
	for unit := range u.days {
		u.days[unit].add(r.day, now, used[unit])
	}
}

// empty reports whether nothing counts any more.
func (u *usage) empty(r *rules, now int64) bool {
	u.minute.slide(now - r.quota.minute())
	return u.minute.first == u.minute.next && now >= u.days[ofRequests].end && now >= u.days[ofTokens].end && now >= u.slots.FullAt()
}

// stats returns what was used, with its times.
func (u *usage) stats(r *rules, now int64) UsageStats {
	u.minute.slide(now - r.quota.minute())
	s := UsageStats{Tokens: u.entries(ofTokens)}
	for i := u.minute.next - 1; i >= u.minute.first; i-- {
		each := u.minute.use(i)
		n := min(each.n[ofRequests], int64(mostListed-len(s.Requests)))
		s.Requests = append(s.Requests, slices.Repeat([]time.Time{utc(each.at)}, int(n))...)
	}
	slices.Reverse(s.Requests)
	if today := u.days[ofRequests].at(now); today.used > 0 {
		s.DayStart, s.DayCount = utc(today.start), int(today.used)
	}
	if r.max[inputTPM] > 0 {
		s.InputTokens = u.entries(ofInput)
	}
	if r.max[outputTPM] > 0 {
		s.OutputTokens = u.entries(ofOutput)
	}
	if today := u.days[ofTokens].at(now); today.used > 0 && r.max[tpd] > 0 {
		s.DayTokens = &TokenEntry{utc(today.start), int(today.used)}
	}
	return s
}

// mostListed is how many requests of a minute stats lists: the latest.
const mostListed = 1 << 17

func (u *usage) entries(of unit) (list []TokenEntry) {
	for i := u.minute.first; i < u.minute.next; i++ {
		if each := u.minute.use(i); each.n[of] > 0 {
			list = append(list, TokenEntry{utc(each.at), int(each.n[of])})
		}
	}
	return list
}

func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// empty reports whether nothing was used.
func (s *UsageStats) empty() bool {
	return len(s.Requests) == 0 && len(s.Tokens) == 0 && s.DayCount == 0 &&
		len(s.InputTokens) == 0 && len(s.OutputTokens) == 0 && s.DayTokens == nil
}
