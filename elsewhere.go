package ratelimit

import (
	"context"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/limit"
)

// compareWithProvider lowers the model's limits where the provider has less left than the
// quota has: then others use the same account.
func (rl *RateLimiter) compareWithProvider(ctx context.Context, m *model, said *providerLimits) {
	q, now := m.quota(), rl.engine.Now()
	lowered := m.elsewhere.Load() != nil
	if !m.compared.Load() {
		m.compared.Store(true)
	}
	if !said.matters(q, lowered) || !lowered && said.agrees(q, &m.snapshot, now) {
		return
	}
	s, err := m.look(ctx)
	if err != nil {
		return // the next call that asks the store reports the error
	}
	used := usedAtProvider(s)
	grown, shrunk := m.lower(q, said, &used, now)
	for _, d := range grown {
		rl.observeProvider(ctx, event.Event{Kind: event.Lowered, Model: m.name, Limit: d.Name(), Said: said[d].Remaining, RetryAfter: said.reset(d)})
	}
	if shrunk {
		rl.engine.Wake(m.scope) // waiting calls have timers for the lower limits
	}
}

// usedAtProvider returns what the provider counts as used. Calls that only the quota's
// margin still counts are not in it: if they were, they would hide usage by others.
func usedAtProvider(s *engine.Standing) (used [kind.Models]int64) {
	for i := range s.Len() { // the provider's limit of a dimension comes after the quota's
		if l, said := s.At(i); !l.Pace {
			used[l.ID%state.AtProvider] = said.Used
		}
	}
	return used
}

// matters reports whether the provider's answer can change the model's limits: the provider
// has less left than a maximum of the quota, or the limits are lowered already.
func (said *providerLimits) matters(q *state.Quota, lowered bool) bool {
	for d := range kind.Models {
		if most := int64(*q.Max(d)); most > 0 && said[d].Remaining >= 0 && (lowered || said[d].Remaining < most) {
			return true
		}
	}
	return false
}

// usageSnapshot is what was used of a model according to the store, when it last admitted a
// call.
type usageSnapshot struct {
	mu   sync.Mutex
	at   int64 // zero: the store has reported nothing yet
	used [kind.Models]int64
}

// recordSnapshot keeps the usage that the store reported when it admitted a call, if the provider's answers say what
// is left: see compareWithProvider.
func (m *model) recordSnapshot(s *engine.Standing) {
	if !m.compared.Load() {
		return
	}
	now, used := m.limiter.engine.Now(), usedAtProvider(s)
	m.snapshot.mu.Lock()
	defer m.snapshot.mu.Unlock()
	m.snapshot.at, m.snapshot.used = now, used
}

// Settled implements [engine.Gate]. It subtracts the refund of a settled call from the last
// snapshot. If the snapshot still contained the refund, usage by others could be mistaken for
// it. A snapshot that was made after the refund becomes too small; then the store is asked
// once more.
func (m *model) Settled(refund engine.Amounts) {
	if !m.compared.Load() {
		return
	}
	m.snapshot.mu.Lock()
	defer m.snapshot.mu.Unlock()
	for d := range kind.Models {
		m.snapshot.used[d] -= refund[d.Unit()]
	}
}

// snapshotFresh is how long a snapshot is used in place of asking the store.
const snapshotFresh = time.Second

// agrees reports whether the provider has at least as much left as the quota had in a fresh
// snapshot. Then nobody else uses the account, and the store need not be asked.
func (said *providerLimits) agrees(q *state.Quota, g *usageSnapshot, now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now-g.at > int64(snapshotFresh) {
		return false
	}
	for d := range kind.Models {
		if most := int64(*q.Max(d)); most > 0 && said[d].Remaining >= 0 && said[d].Remaining < most-g.used[d] {
			return false
		}
	}
	return true
}

// lower records how much less the provider has left than the quota, given what is used. It
// returns the dimensions in which the difference has grown, and whether it has shrunk in any.
//
// A provider's answer does not include calls that arrive after it is sent. With many calls
// under way, some answers therefore show too small a difference. For the limits of a minute
// the largest difference counts: it shrinks by itself soon enough. For the limits of a day
// the latest answer counts.
func (m *model) lower(q *state.Quota, said *providerLimits, used *[kind.Models]int64, now int64) (grown []kind.Kind, shrunk bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e feedback.Elsewhere
	if before := m.elsewhere.Load(); before != nil {
		e = *before
	}
	was := e.At(now)
	for d := range kind.Models {
		reset := said.reset(d)
		if *q.Max(d) == 0 || said[d].Remaining < 0 || reset <= 0 {
			continue
		}
		n := max(int64(*q.Max(d))-used[d]-min(said[d].Remaining, state.MaxQuota), 0)
		switch {
		case n > was.N[d]:
			grown = append(grown, d)
		case d.Window() != kind.Day:
			continue
		}
		shrunk = shrunk || n < was.N[d]
		e[d] = feedback.Absence{N: n, From: now, Until: now + int64(reset)}
	}
	if after := e.At(now); after.None() {
		m.elsewhere.Store(nil)
	} else {
		stored := e // a copy, so that e itself is not allocated on each call
		m.elsewhere.Store(&stored)
	}
	return grown, shrunk
}

// Lower implements [engine.Gate]. It returns r with lower limits where the provider has
// less left than the quota.
func (m *model) Lower(r *engine.Rules, now int64) *engine.Rules {
	e := m.elsewhere.Load()
	if e == nil {
		return r
	}
	missing := e.At(now)
	if missing.None() {
		m.elsewhere.CompareAndSwap(e, nil)
		return r
	}
	return r.Lowered(func(l *engine.Limit) int64 { return missing.N[l.ID] })
}

// Reconsider implements [engine.Gate]. The engine computes when to retry as if the lowered
// limits stayed. Reconsider corrects the time: usage leaves the window, and at the same time
// the lowered limits rise again.
func (m *model) Reconsider(ctx context.Context, s *engine.Standing, ask *engine.Ask) error {
	var missing feedback.Missing // none, if it has come back since
	if elsewhere := m.elsewhere.Load(); elsewhere != nil {
		missing = elsewhere.At(m.limiter.engine.Now())
	}
	accounts, at, err := m.accounts(ctx)
	if err != nil {
		return err
	}
	for i := range s.Len() {
		l, said := s.At(i)
		if !said.Allowed && l.Elsewhere > 0 {
			d := kind.Kind(l.ID)
			s := shortage{&missing, d, int64(*m.quota().Max(d)), s.Rules().Amount(l.Unit, ask)}
			said.RetryAfter = max(s.retryAfter(l.Limit, said, accounts[l.Unit], at), 1) // not 0: a refund may have come since
		}
	}
	return nil
}

// shortage is a call of n that a dimension denies while the provider has less left than the quota.
type shortage struct {
	missing *feedback.Missing
	dim     kind.Kind
	max, n  int64
}

// retryAfter returns how long it takes until the dimension lets the call pass.
func (s *shortage) retryAfter(l limit.Limit, said *limit.Decision, account *limit.Account, now int64) time.Duration {
	switch {
	case s.max == 0: // the limit was lifted meanwhile
		return 0
	case s.n > s.max:
		return Never
	}
	earliest := Never
	try := func(at time.Duration, freed int64) {
		switch rest := said.Used - freed + s.n; {
		case rest <= 1: // a lowered limit is never less than 1
			earliest = min(earliest, at)
		case rest <= s.max:
			earliest = min(earliest, max(at, s.missing.When(int(s.dim), s.max-rest)))
		}
	}
	try(0, 0)
	if s.dim.Window() == kind.Day {
		try(said.ResetAfter, said.Used)
		return earliest
	}
	freed, since := int64(0), now-int64(l.Period())
	for at, n := range account.Entries() {
		leaves := time.Duration(at - since)
		if leaves <= 0 {
			continue
		}
		if leaves >= earliest {
			break
		}
		freed += n
		try(leaves, freed)
	}
	return earliest
}
