package engine

import (
	"fmt"
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// thresholds are percents of budgets at which observers get an event. They are replaced, never changed.
type thresholds struct {
	percents []int64 // ascending
	lowest   int64
}

// budgets remembers which thresholds of the budgets among the limits of rules this process has reported.
type budgets struct {
	notified []atomic.Pointer[notified] // by the places of the limits
	raised   atomic.Bool                // a settlement has used more than was taken, and what is used is looked at soon
}

// notified is the highest threshold of a budget that was reported in its window, or is about to be. It keeps calls
// from asking the store again and again: the store decides who reports it.
type notified struct {
	of      *thresholds
	percent int64
	since   int64 // when the window began, of a limit by windows
	until   int64 // of a sliding limit, when a threshold may be reported again
}

// MostThresholds is how many thresholds budgets may have.
const MostThresholds = 20

// SetThresholds sets the percents of every budget at which the observer gets an event: once each a window,
// by one of the processes that share the store. Without any, there are no such events.
func (e *Engine) SetThresholds(percents []int) error {
	if len(percents) > MostThresholds {
		return fmt.Errorf("ratelimit: %d thresholds: there may be %d", len(percents), MostThresholds)
	}
	t := &thresholds{}
	for _, p := range percents {
		if p < 1 || p > 100 {
			return fmt.Errorf("ratelimit: a threshold of %d%%: it must be from 1%% to 100%%", p)
		}
		t.percents = append(t.percents, int64(p))
	}
	slices.Sort(t.percents)
	t.percents = slices.Compact(t.percents)
	before := e.thresholds.Load()
	switch {
	case len(percents) == 0 || e.observer == nil:
		e.thresholds.Store(nil)
	case before == nil || !slices.Equal(before.percents, t.percents): // with another pointer, all thresholds are reported anew
		t.lowest = t.percents[0]
		e.thresholds.Store(t)
	}
	return nil
}

// isReached reports whether a budget has reached a threshold.
func (t *thresholds) isReached(l *Limit, v *limit.Verdict) bool {
	count := l.Limit.Count()
	return l.Budget && (!v.Allowed || (count-v.Remaining)*100 >= t.lowest*count)
}

// nearlyAll is how many percent of a budget must be used for a denial to count as 100%. Of a budget of
// which less is used, it was the size of the call that denied it.
const nearlyAll = 90

// highest returns the highest threshold that a budget has reached, or 0. A budget that is nearly used
// up and denies a call has reached 100%: too little is left of it.
func (t *thresholds) highest(l *Limit, v *limit.Verdict) (highest int64) {
	count := l.Limit.Count()
	part := (count - v.Remaining) * 100 / count
	if !v.Allowed && v.RetryAfter != limit.Never && part >= nearlyAll {
		part = 100
	}
	for _, p := range t.percents {
		if p <= part {
			highest = p
		}
	}
	return highest
}

// notice finds budgets that have reached a threshold, among all limits of a call that was admitted, or
// those that have denied it.
func (e *Engine) notice(t *thresholds, project string, all []Standing, admitted bool) {
	for k := range all {
		s := &all[k]
		if s.plan.rules == nil || s.plan.rules.budgets == nil {
			continue
		}
		for i := range s.Len() {
			l, said := s.At(i)
			if v := said.Verdict(); t.isReached(l, &v) && (admitted || !v.Allowed) {
				e.reached(t, project, s.plan.rules, s.plan.limits[i], &v)
			}
		}
	}
}

// Notice finds out whether the limit at a place in the rules of a scope, which has given a verdict
// outside of the engine, is a budget that has reached a threshold. scope returns the scope if that may
// be so, or nil.
func (e *Engine) Notice(project string, l *Limit, v *limit.Verdict, at int, scope func() *Scope) {
	t := e.thresholds.Load()
	if t == nil || !t.isReached(l, v) {
		return
	}
	s := scope()
	if s == nil {
		return
	}
	if r := s.rules.Load(); r != nil && at < len(r.Limits) && r.Limits[at] == *l {
		e.reached(t, project, r, at, v)
	}
}

// reached queues the event of a threshold that a budget has reached, unless it was reported in this window as far as
// this process knows.
func (e *Engine) reached(t *thresholds, project string, r *Rules, at int, v *limit.Verdict) {
	l := &r.Limits[at]
	percent, windowed := t.highest(l, v), l.Limit.Algorithm() == limit.FixedWindow
	if percent == 0 || windowed && v.Since == 0 { // the store is lost, and does not know the window
		return
	}
	next := notified{of: t, percent: percent, since: v.Since}
	now := int64(0)
	if !windowed {
		now = e.clock()
	}
	for {
		known := r.budgets.notified[at].Load()
		if known.covers(next, now) {
			return
		}
		if e.announce(project, r, at, *v, known, next) {
			return
		}
	}
}

// announce gives the notifier what is to be reported next, unless what was known to be reported has changed.
func (e *Engine) announce(project string, r *Rules, at int, v limit.Verdict, known *notified, next notified) bool {
	now := e.clock()
	next.until = now + int64(r.Limits[at].Limit.Period())
	c := crossing{project: project, rules: r, at: at, now: now, verdict: v, notified: &next}
	if !r.budgets.notified[at].CompareAndSwap(known, &next) {
		return false
	}
	if !e.notifier.add(e, c) {
		e.missed(&c, errTooMany)
	}
	return true
}

// covers reports whether what was reported, if anything, includes what is to be reported next. now is 0 for a
// limit by windows.
func (t *notified) covers(next notified, now int64) bool {
	return t != nil && t.of == next.of && t.percent >= next.percent && t.since == next.since && (now == 0 || now < t.until)
}

// forget forgets what was reported.
func (b *budgets) forget() {
	for i := range b.notified {
		b.notified[i].Store(nil)
	}
}
