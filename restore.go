package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// restorer makes usage of what was written of it, in any order. What does not
// count any more is dropped, and what is in the future counts as of now.
type restorer struct {
	rules *rules
	now   int64
	uses  []use
	usage usage
}

// oldest is longer ago than anything that still counts.
const oldest = 72 * time.Hour

// at returns a time as one that can be counted, or false.
func (s *restorer) at(t time.Time) (int64, bool) {
	if t.After(utc(s.now)) {
		return s.now, true
	}
	if t.Before(utc(s.now).Add(-oldest)) {
		return 0, false
	}
	return t.UnixNano(), true
}

// minute enters what was used at a time.
func (s *restorer) minute(of unit, t time.Time, n int64) {
	if at, ok := s.at(t); ok && n > 0 && at > s.now-s.rules.quota.minute() {
		u := use{at: at}
		u.n[of] = n
		s.uses = append(s.uses, u)
	}
}

// day enters what was used in the day that began at a time.
func (s *restorer) day(of unit, start time.Time, n int64) {
	if at, ok := s.at(start); ok && n > 0 {
		s.usage.days[of].add(s.rules.day, at, n)
	}
}

func (s *restorer) result() *usage {
	slices.SortStableFunc(s.uses, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	for _, u := range s.uses {
		s.usage.minute.add(u.at, u.n)
	}
	return &s.usage
}

// newUsage returns usage as it was saved.
func newUsage(r *rules, saved UsageStats, now int64) *usage {
	s := restorer{rules: r, now: now}
	for _, at := range saved.Requests {
		s.minute(ofRequests, at, 1)
	}
	for of, entries := range map[unit][]TokenEntry{ofTokens: saved.Tokens, ofInput: saved.InputTokens, ofOutput: saved.OutputTokens} {
		for _, e := range entries {
			s.minute(of, e.Time, int64(e.Count))
		}
	}
	s.day(ofRequests, saved.DayStart, int64(saved.DayCount))
	if saved.DayTokens != nil {
		s.day(ofTokens, saved.DayTokens.Time, int64(saved.DayTokens.Count))
	}
	return s.result()
}

// usageOf returns usage as accounts have it, which are those of the rules'
// charges in their order.
func usageOf(r *rules, accounts []*limit.Account, now int64) *usage {
	s := restorer{rules: r, now: now}
	for i, c := range r.charged {
		account := accounts[i]
		account.Fit(c.limits, now)
		if c.unit == ofSlots {
			s.usage.slots = *account
			continue
		}
		for at, n := range account.Entries() {
			s.minute(c.unit, utc(at), n)
		}
		for k, d := range c.dims {
			if d.ofDay() {
				if said := account.Check(c.limits[k], now, 0); said.Used > 0 {
					s.usage.days[c.unit] = day{start: said.Since, end: now + int64(said.ResetAfter), since: said.Since, used: said.Used}
				}
			}
		}
	}
	return s.result()
}

// accounts returns usage as accounts have it, the other way.
func (u *usage) accounts(r *rules, now int64) []*limit.Account {
	var accounts []*limit.Account
	for _, c := range r.charged {
		account := new(limit.Account)
		for k, d := range c.dims {
			only := c.limits[k : k+1]
			switch {
			case c.unit == ofSlots:
				*account = u.slots
			case d.ofDay():
				today := u.days[c.unit].at(now)
				account.Settle(only, limit.Receipt{At: today.start}, today.start, today.used)
			default:
				for _, e := range u.entries(c.unit) {
					at := e.Time.UnixNano()
					account.Settle(only, limit.Receipt{At: at}, at, int64(e.Count))
				}
			}
		}
		accounts = append(accounts, account)
	}
	return accounts
}
