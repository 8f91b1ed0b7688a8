package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

// sharing is how the limits of a scope are divided among the flows of its calls: those of a shared scope
// among all flows, and those of an own scope among the flows of the scopes below it and of its own calls.
type sharing struct {
	pool   *fair.Pool
	limits []int    // the limits that are divided, by their places in Rules.Limits
	names  []string // of the shares, as decisions and events have them
	held   bool     // some of the limits are of what calls hold until they end

	nobody fair.Who               // the member of calls without a scope of their own
	sole   atomic.Pointer[member] // of an own scope, the first of those in it whose calls have come: see isSole

	mu       sync.Mutex
	counters map[string]*Scope // that count what each member uses, in a store that several processes share
}

// mostShared is how many limits of a scope are divided. No scope has more yet.
const mostShared = 12

// ShareEnd ends the name of a share of a limit.
const ShareEnd = kind.ShareEnd

// LongestDivided is the longest period of a limit of an own scope that is divided. What flows will want of
// longer ones could only be guessed.
const LongestDivided = 24 * time.Hour

// divides reports whether a limit of the rules may be divided among flows.
func (r *Rules) divides(l *Limit) bool {
	return !l.Free && !l.Pace && (r.scope.Kind == Shared || l.Limit.Period() <= LongestDivided)
}

// divide divides the limits of a scope among flows. What the flows have used stays, if nothing but counts has
// changed since the rules before, which may be nil.
func (r *Rules) divide(before *Rules) {
	var list []limit.Limit
	s := &sharing{}
	for i := range r.Limits {
		if l := &r.Limits[i]; r.divides(l) && len(list) < mostShared {
			list = append(list, l.Limit)
			s.limits, s.names = append(s.limits, i), append(s.names, l.Name+ShareEnd)
			s.held = s.held || l.Unit.InFlight()
		}
	}
	if len(list) == 0 {
		return
	}
	if old := before.shared(); old != nil && before.Reserve == r.Reserve && slices.Equal(old.kinds(before), s.kinds(r)) {
		s.pool = old.pool
		s.sole.Store(old.sole.Load())
	} else {
		s.pool = r.newPool(s, list)
	}
	r.sharing.CompareAndSwap(nil, s)
}

// newPool returns the pool of the limits of a scope that are divided.
func (r *Rules) newPool(s *sharing, list []limit.Limit) *fair.Pool {
	p := fair.NewPool(list, millionths(r.Reserve))
	for k, i := range s.limits {
		if r.Limits[i].Unit.InFlight() {
			p.Hold(k)
		}
	}
	if r.scope.Kind == Shared {
		p.Follow(&r.scope.engine.dedicated)
	} else {
		p.Inside(&r.scope.group)
	}
	return p
}

// divided returns how the limits of an own scope are divided. They are from its first call on with which
// there are scopes below it.
func (r *Rules) divided() *sharing {
	if s := r.sharing.Load(); s != nil {
		return s
	}
	r.divide(nil)
	return r.sharing.Load()
}

// shared returns how the limits are divided; nil: they are not. r may be nil.
func (r *Rules) shared() *sharing {
	if r == nil {
		return nil
	}
	return r.sharing.Load()
}

// kinds returns the limits that are divided without their counts.
func (s *sharing) kinds(r *Rules) (list []Limit) {
	for _, i := range s.limits {
		l := r.Limits[i]
		l.Limit = l.Limit.WithCount(1)
		list = append(list, l)
	}
	return list
}

// terms returns what the flow of a scope was promised where it shares another.
func (s *Scope) terms() (t fair.Terms) {
	if r := s.rules.Load(); r != nil {
		t = r.terms()
	}
	return t
}

func (r *Rules) terms() fair.Terms {
	return fair.Terms{Weight: r.Weight, Rank: r.Rank, Min: millionths(r.MinShare), Max: millionths(r.MaxShare)}
}

// millionths returns a part of a quota as pools count it. A part that is not zero is not rounded to zero, which would
// mean another thing.
func millionths(part float64) int64 {
	if part <= 0 {
		return 0
	}
	return max(int64(math.Round(part*fair.Whole)), 1)
}

// Dedicate reserves the MinShare of these flows' rules in every shared scope, even before their first call. It replaces
// the flows of the last Dedicate.
func (e *Engine) Dedicate(flows map[string]*Rules) {
	terms := make(map[string]fair.Terms, len(flows))
	for name, r := range flows {
		terms[name] = r.terms()
	}
	e.dedicated.Set(terms)
}

// Share is what a flow's share of a limit has said to a call that it denies.
type Share struct {
	fair.Denial
	Name       string
	Limit      *Limit        // that is divided
	RetryAfter time.Duration // until enough of what the flow has used has come back; limit.Never, if the call is larger than its MaxShare

	own bool // the limit is that of an own scope
}

// Sharer returns whose share it is: a project, or a key of one, which is named "key" and its id.
func (s *Share) Sharer() string { return sharerOf(s.Of) }

// OfKey reports whether it is the share of a key.
func (s *Share) OfKey() bool { return strings.HasPrefix(s.Sharer(), keyScope) }

// Share returns which share of the scope denies the call, or nil.
func (s *Standing) Share() *Share { return s.share }

// Denied returns the share as callers see it.
func (s *Share) Denied() decision.DeniedShare {
	w := s.Limit.Window
	if w == nil && s.own {
		slots := decision.NewWindow(kind.ProjectConcurrent, s.Limit.Limit, false)
		w = &slots
	}
	return decision.DeniedShare{Project: s.Sharer(), Window: w, Max: s.Share, Used: s.Used, Projects: s.Members}
}

// Shares returns where each flow stands in the limits of a scope that are divided, in the order of their
// names.
func (e *Engine) Shares(s *Scope) (all []event.ProjectShare) {
	r := s.rules.Load()
	d := r.shared()
	if d == nil {
		return nil
	}
	for _, flow := range d.pool.Read(e.clock()) {
		name, _, _ := strings.Cut(flow.Name, keySign)
		of := event.ProjectShare{Project: name, Waiting: flow.Waiting}
		for i, p := range flow.Parts {
			of.Limits = append(of.Limits, event.LimitShare{Name: r.Limits[d.limits[i]].Name, Share: int(p.Share), Used: int(p.Used), Part: int(p.Part), Lent: int(p.Lent), Borrowed: int(p.Borrowed)})
		}
		at, found := slices.BinarySearchFunc(all, name, func(s event.ProjectShare, name string) int { return cmp.Compare(s.Project, name) })
		if found {
			addShare(&all[at], &of)
		} else {
			all = slices.Insert(all, at, of)
		}
	}
	return all
}

// addShare adds what calls of a project with one key have to what those with others have.
func addShare(to, of *event.ProjectShare) {
	to.Waiting += of.Waiting
	for i := range to.Limits {
		t, o := &to.Limits[i], &of.Limits[i]
		*t = event.LimitShare{Name: t.Name, Share: t.Share + o.Share, Used: t.Used + o.Used, Part: t.Part + o.Part, Lent: t.Lent + o.Lent, Borrowed: t.Borrowed + o.Borrowed}
	}
}
