package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/limit"
)

// restorer makes the accounts of a model from what was written of its usage, in any order.
// What does not count any more is dropped, and what is in the future counts as of now.
type restorer struct {
	rules *admission.Rules
	now   int64
	uses  []restored
}

// restored is what was used of a unit at a time: of the minute's limits, or of the day's.
type restored struct {
	unit  admission.Unit
	ofDay bool
	at, n int64
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
func (s *restorer) minute(of admission.Unit, t time.Time, n int64) {
	if at, ok := s.at(t); ok && n > 0 && at > s.now-setupOf(s.rules).quota.minute() {
		s.uses = append(s.uses, restored{of, false, at, n})
	}
}

// day enters what was used in the day that began at a time.
func (s *restorer) day(of admission.Unit, start time.Time, n int64) {
	if at, ok := s.at(start); ok && n > 0 {
		s.uses = append(s.uses, restored{of, true, at, n})
	}
}

// accounts returns the accounts by unit.
func (s *restorer) accounts() map[admission.Unit]*limit.Account {
	accounts := map[admission.Unit]*limit.Account{}
	slices.SortStableFunc(s.uses, func(a, b restored) int { return cmp.Compare(a.at, b.at) })
	for _, u := range s.uses {
		limits := s.limits(u.unit, u.ofDay)
		if len(limits) == 0 {
			continue
		}
		if accounts[u.unit] == nil {
			accounts[u.unit] = new(limit.Account)
		}
		accounts[u.unit].Settle(limits, limit.Receipt{At: u.at}, u.at, u.n)
	}
	return accounts
}

// limits returns the limits of a unit: those of the day, or of the minute.
func (s *restorer) limits(of admission.Unit, ofDay bool) (list []limit.Limit) {
	for _, l := range s.rules.Limits {
		if l.Unit == of && ofDay == (l.Limit.Algorithm() == limit.FixedWindow) {
			list = append(list, l.Limit)
		}
	}
	return list
}

// restore returns the accounts of usage as it was saved.
func restore(r *admission.Rules, saved UsageStats, now int64) map[admission.Unit]*limit.Account {
	s := restorer{rules: r, now: now}
	for _, at := range saved.Requests {
		s.minute(admission.Requests, at, 1)
	}
	for of, entries := range map[admission.Unit][]TokenEntry{
		admission.Tokens: saved.Tokens, admission.Input: saved.InputTokens, admission.Output: saved.OutputTokens,
	} {
		for _, e := range entries {
			s.minute(of, e.Time, int64(e.Count))
		}
	}
	s.day(admission.Requests, saved.DayStart, int64(saved.DayCount))
	if saved.DayTokens != nil {
		s.day(admission.Tokens, saved.DayTokens.Time, int64(saved.DayTokens.Count))
	}
	return s.accounts()
}
