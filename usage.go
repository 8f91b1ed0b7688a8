package ratelimit

import (
	"context"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/limit"
)

// usage is what was used of a model: the account of each unit that its rules count.
type usage struct {
	rules    *admission.Rules
	accounts map[admission.Unit]*limit.Account
	now      int64 // by the store's clock, in Unix nanoseconds
}

// usage reads what was used of a model.
func (m *model) usage(ctx context.Context) (*usage, error) {
	accounts, at, err := m.limiter.engine.Read(ctx, m.scope)
	return &usage{m.scope.Rules(), accounts, at}, err
}

// empty reports whether nothing counts any more.
func (u *usage) empty() bool {
	for _, a := range u.accounts {
		if u.now < a.FullAt() {
			return false
		}
	}
	return true
}

// stats returns what was used, with its times.
func (u *usage) stats() UsageStats {
	q := &setupOf(u.rules).quota
	s := UsageStats{Tokens: u.entries(admission.Tokens)}
	for _, e := range slices.Backward(u.entries(admission.Requests)) {
		n := min(e.Count, mostListed-len(s.Requests))
		s.Requests = append(s.Requests, slices.Repeat([]time.Time{e.Time}, n)...)
	}
	slices.Reverse(s.Requests)
	if today := u.day(rpd); today != nil {
		s.DayStart, s.DayCount = today.Time, today.Count
	}
	if q.MaxInputTPM > 0 {
		s.InputTokens = u.entries(admission.Input)
	}
	if q.MaxOutputTPM > 0 {
		s.OutputTokens = u.entries(admission.Output)
	}
	if q.MaxTPD > 0 {
		s.DayTokens = u.day(tpd)
	}
	return s
}

// mostListed is how many requests of a minute stats lists: the latest.
const mostListed = 1 << 17

// entries returns what was used of a unit in the minute, with its times.
func (u *usage) entries(of admission.Unit) (list []TokenEntry) {
	account := u.accounts[of]
	if account == nil {
		return nil
	}
	since := u.now - setupOf(u.rules).quota.minute()
	for at, n := range account.Entries() {
		if at > since {
			list = append(list, TokenEntry{utc(at), int(n)})
		}
	}
	return list
}

// day returns since when and how much was used of a day, or nil if nothing was.
func (u *usage) day(d dimension) *TokenEntry {
	for _, l := range u.rules.Limits {
		if l.ID != int(d) {
			continue
		}
		if said := u.accounts[l.Unit].Check(l.Limit, u.now, 0); said.Used > 0 {
			return &TokenEntry{utc(said.Since), int(said.Used)}
		}
	}
	return nil
}

func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// empty reports whether nothing was used.
func (s *UsageStats) empty() bool {
	return len(s.Requests) == 0 && len(s.Tokens) == 0 && s.DayCount == 0 &&
		len(s.InputTokens) == 0 && len(s.OutputTokens) == 0 && s.DayTokens == nil
}
