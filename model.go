package ratelimit

import (
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/line"
)

// model is what this process knows of one model: its rules, who waits for it,
// and, unless a store counts, what was used of it.
type model struct {
	limiter *RateLimiter
	name    string
	rules   atomic.Pointer[rules]
	line    *line.Line
	day     atomic.Pointer[seenDay] // the last that was seen in a store, or nil

	elsewhere atomic.Pointer[elsewhere] // used, by the provider's word; nil: nothing
	glance    atomic.Pointer[glance]    // of what a store knows; nil: none yet
	compared  atomic.Int64              // when a store was last asked what the provider counts of it
	learned   int64                     // when its quota was last learned; the limiter's setting guards it

	mu    sync.Mutex // guards the rest, and changes of rules
	last  int64      // the latest time of which it has heard
	epoch int32      // how often usage was replaced
	usage usage
}

// newModel returns a model of which nothing is used.
func (rl *RateLimiter) newModel(name string, r *rules) *model {
	m := &model{limiter: rl, name: name, line: rl.hall.NewLine()}
	m.rules.Store(r)
	return m
}

// now returns the time of a decision, of which the clock was read before the
// lock was had.
func (m *model) now(clock int64) int64 {
	m.last = max(m.last, clock)
	return m.last
}

func (m *model) look(clock int64, q request, o *outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now(clock)
	r := m.rulesAt(now)
	ask := r.amounts(q)
	m.usage.look(r, now, &ask, o)
}

// stats says what is used.
func (m *model) stats(clock int64, o *outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage.look(m.rules.Load(), m.now(clock), &amounts{}, o)
}

// statsAtProvider says what the provider counts as used.
func (m *model) statsAtProvider(clock int64, o *outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage.lookAtProvider(m.rules.Load(), m.now(clock), o)
}

// take takes what is asked for, if it may pass and nothing else that also asks
// denies it. also may be nil.
func (m *model) take(clock int64, q request, o *outcome, also func(ask amounts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now(clock)
	r := m.rulesAt(now)
	ask := r.amounts(q)
	m.usage.look(r, now, &ask, o)
	if also != nil {
		also(ask)
	}
	if !o.denied {
		m.usage.take(r, &ask, o)
		o.epoch = m.epoch
	}
}

// settle needs no clock: what has left its window since the last decision will
// have left it at the next.
func (m *model) settle(r *Reservation, used *amounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.epoch == m.epoch {
		m.usage.settle(m.rules.Load(), &r.taken, r.at, m.last, used)
	}
}

func (m *model) record(clock int64, q request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rules.Load()
	used := r.amounts(q)
	m.usage.record(r, m.now(clock), &used)
}

// replace puts saved usage in the place of what was used so far.
func (m *model) replace(saved UsageStats, clock int64) {
	m.mu.Lock()
	m.usage = *newUsage(m.rules.Load(), saved, m.now(clock))
	m.epoch++
	m.mu.Unlock()
	m.line.Wake()
}

// setRules changes the rules. What was used stays; a day that has begun ends when
// the new rules say.
func (m *model) setRules(r *rules, clock int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now(clock)
	before := m.rules.Swap(r)
	if before == nil || before.day == r.day {
		return
	}
	for i := range m.usage.days {
		m.usage.days[i].move(r.quota, r.day, now)
	}
}

// prune forgets what does not count any more, and reports whether nothing is
// left.
func (m *model) prune(clock int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	empty := m.usage.empty(m.rules.Load(), m.now(clock))
	if empty {
		m.usage = usage{}
	}
	return empty
}
