package state

import (
	"cmp"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Accounts is what a model has used of each unit that is counted.
type Accounts map[engine.Unit]*limit.Account

// Empty reports whether nothing that was used counts any more at now, in Unix nanoseconds.
func (a Accounts) Empty(now int64) bool {
	for _, account := range a {
		if now < account.FullAt() {
			return false
		}
	}
	return true
}

// maxRequests is how many requests of a minute a Usage has. If there were more, it has the latest.
const maxRequests = 1 << 17

// Usage returns what a model with a quota has used, as of now.
func (a Accounts) Usage(q *Quota, now int64) Usage {
	entries := func(d kind.Kind) (list []Entry) {
		account := a[d.Unit()]
		if account == nil || *q.Max(d) == 0 && !isCounted(d) {
			return nil
		}
		for at, n := range account.Entries() {
			if at > now-int64(q.minute()) {
				list = append(list, Entry{UTC(at), int(n)})
			}
		}
		return list
	}
	u := Usage{Tokens: entries(kind.MaxTPM), InputTokens: entries(kind.MaxInputTPM), OutputTokens: entries(kind.MaxOutputTPM)}
	for _, e := range slices.Backward(entries(kind.MaxRPM)) {
		n := min(e.Count, maxRequests-len(u.Requests))
		u.Requests = append(u.Requests, slices.Repeat([]time.Time{e.Time}, n)...)
	}
	slices.Reverse(u.Requests)
	if today := a.day(q, kind.MaxRPD, now); today != nil {
		u.DayStart, u.DayCount = today.Time, today.Count
	}
	if q.MaxTPD > 0 {
		u.DayTokens = a.day(q, kind.MaxTPD, now)
	}
	return u
}

// day returns how much was used in the present day, and when that day began. It returns nil if nothing
// was used.
func (a Accounts) day(q *Quota, d kind.Kind, now int64) *Entry {
	account := a[d.Unit()]
	if account == nil {
		return nil
	}
	decision := account.Check(q.limit(d), now, 0)
	if decision.Used == 0 {
		return nil
	}
	return &Entry{UTC(decision.Since), int(decision.Used)}
}

// UTC converts a time in Unix nanoseconds.
func UTC(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// Empty reports whether nothing was used.
func (u *Usage) Empty() bool {
	return len(u.Requests) == 0 && len(u.Tokens) == 0 && u.DayCount == 0 &&
		len(u.InputTokens) == 0 && len(u.OutputTokens) == 0 && u.DayTokens == nil
}

// maxAge is the age from which on no usage counts any more, whatever the quota.
const maxAge = 72 * time.Hour

// Accounts returns the accounts of a model with a quota and such usage. Usage that does not count any
// more is dropped, and usage in the future counts as of now, in Unix nanoseconds.
func (u *Usage) Accounts(q *Quota, now int64) Accounts {
	var uses []use
	add := func(of kind.Kind, e Entry) {
		if e.Count <= 0 || e.Time.Before(UTC(now).Add(-maxAge)) {
			return
		}
		at := now
		if e.Time.Before(UTC(now)) {
			at = e.Time.UnixNano()
		}
		if of.Window() == kind.Day || at > now-int64(q.minute()) {
			uses = append(uses, use{of, at, int64(e.Count)})
		}
	}
	for _, at := range u.Requests {
		add(kind.MaxRPM, Entry{at, 1})
	}
	for d, entries := range map[kind.Kind][]Entry{kind.MaxTPM: u.Tokens, kind.MaxInputTPM: u.InputTokens, kind.MaxOutputTPM: u.OutputTokens} {
		for _, e := range entries {
			add(d, e)
		}
	}
	add(kind.MaxRPD, Entry{u.DayStart, u.DayCount})
	if u.DayTokens != nil {
		add(kind.MaxTPD, *u.DayTokens)
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	return q.charge(uses)
}

// use is an amount n that was used of a kind at a time, or in the day that began at that time.
type use struct {
	of    kind.Kind
	at, n int64
}

// charge returns accounts that are charged with uses, which are in the order of their times.
func (q *Quota) charge(uses []use) Accounts {
	accounts, limits := Accounts{}, q.Limits()
	for _, u := range uses {
		unit := u.of.Unit()
		var charged []limit.Limit // the limits by the day, or those by the minute
		for _, l := range limits {
			if l.Unit == unit && u.of.Window() == kind.Day == (l.Limit.Algorithm() == limit.FixedWindow) {
				charged = append(charged, l.Limit)
			}
		}
		if len(charged) == 0 {
			continue
		}
		if accounts[unit] == nil {
			accounts[unit] = new(limit.Account)
		}
		accounts[unit].Settle(charged, limit.Receipt{At: u.at}, u.at, u.n)
	}
	return accounts
}
