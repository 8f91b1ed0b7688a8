package ratelimit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// ProjectLimits is what a project may use, of all models together. Do not change
// it once it was handed out.
type ProjectLimits struct {
	Requests []limit.Limit // on requests
	Tokens   []limit.Limit // on tokens, prompt and output together
	Names    []string      // of all of these, in order

	// MaxConcurrent is how many of its calls may be under way at a time: reserved,
	// and neither committed nor cancelled. 0 is any number. Its name is
	// [ConcurrentProject].
	MaxConcurrent int

	Priority   int // of the project among those who wait for a model: higher comes first
	Weight     int // of the project among those of its priority: 0 is 1
	MaxWaiting int // of the project's calls for one model: 0 is any number
}

// ConcurrentProject is the name of the limit on the calls of a project at a time.
const ConcurrentProject = "concurrent-project"

// ProjectStanding is what the limits of a project have said to a call, in order.
type ProjectStanding struct {
	Limits    *ProjectLimits
	Decisions []limit.Decision
}

// Charges returns what a call is charged that asks for so much of a project.
func (l *ProjectLimits) Charges(project string, requests, tokens int64) []store.Charge {
	return l.charge(nil, project, &amounts{ofRequests: requests, ofAll: tokens})
}

// charge adds what is asked of a project to a model's charges.
func (l *ProjectLimits) charge(list []store.Charge, project string, ask *amounts) []store.Charge {
	prefix := projectKey(project)
	if len(l.Requests) > 0 {
		list = append(list, store.Charge{Key: prefix + unitNames[ofRequests], Limits: l.Requests, N: ask[ofRequests]})
	}
	if len(l.Tokens) > 0 {
		n := ask[ofAll]
		if ask[ofRequests] > 0 {
			n = max(n, 1) // so that a debt holds up who never estimates
		}
		list = append(list, store.Charge{Key: prefix + unitNames[ofTokens], Limits: l.Tokens, N: n})
	}
	if l.MaxConcurrent > 0 {
		list = append(list, store.Charge{Key: prefix + unitNames[ofSlots], Limits: []limit.Limit{atATime(int64(l.MaxConcurrent))}, N: 1})
	}
	return list
}

// actual adds what was used to a model's, in the order of charge.
func (l *ProjectLimits) actual(list []int64, used *amounts) []int64 {
	if len(l.Requests) > 0 {
		list = append(list, used[ofRequests])
	}
	if len(l.Tokens) > 0 {
		list = append(list, used[ofAll])
	}
	if l.MaxConcurrent > 0 {
		list = append(list, 0) // it has ended
	}
	return list
}

// hearProject enters what the limits of a project say.
func (o *outcome) hearProject(l *ProjectLimits, said []limit.Decision) {
	o.project = &ProjectStanding{l, said}
	windows := said[:len(l.Requests)+len(l.Tokens)]
	o.own = store.Deciding(windows).RetryAfter
	if l.MaxConcurrent > 0 {
		slot := &said[len(windows)]
		o.ownSlot, slot.RetryAfter = slot.RetryAfter, min(slot.RetryAfter, slotGuess)
	}
	o.denied = o.denied || o.own > 0 || o.ownSlot > 0
}

// ownWait returns when the limits of the project let the request pass, as far as is
// known: see modelWait. What is known comes before a guess that is longer.
func (o *outcome) ownWait(guess time.Duration) time.Duration {
	if o.own > 0 {
		guess = min(guess, slotGuess)
	}
	return max(o.own, min(o.ownSlot, guess))
}

// longest returns the place of the limit that denies longest.
func (s *ProjectStanding) longest() int {
	i := slices.IndexFunc(s.Decisions, func(d limit.Decision) bool { return !d.Allowed })
	for k, d := range s.Decisions {
		if d.RetryAfter > s.Decisions[i].RetryAfter {
			i = k
		}
	}
	return i
}

// exceeded returns the name of the limit that denies longest.
func (s *ProjectStanding) exceeded() string { return s.Limits.name(s.longest()) }

// name returns the name of a limit, which may have none.
func (l *ProjectLimits) name(i int) string {
	switch {
	case i == len(l.Requests)+len(l.Tokens):
		return ConcurrentProject
	case i < len(l.Names):
		return l.Names[i]
	}
	return "project"
}

// priority returns that of the project. There may be no limits.
func (l *ProjectLimits) priority() int {
	if l == nil {
		return 0
	}
	return l.Priority
}

// reason says for people what denies.
func (s *ProjectStanding) reason() string {
	by := s.Decisions[s.longest()]
	name := s.exceeded()
	what := "requests"
	switch {
	case name == ConcurrentProject:
		return fmt.Sprintf("all of the project's %d calls at a time are under way: try again in %v", by.Limit.Count(), told(by.RetryAfter))
	case strings.HasPrefix(name, "tokens"):
		what = "tokens"
	}
	if by.RetryAfter == Never {
		return fmt.Sprintf("more than all %d %s of the project in %v", by.Limit.Count(), what, by.Limit.Period())
	}
	return fmt.Sprintf("the project has %d of its %d %s in %v left, which is too little: try again in %v",
		by.Remaining, by.Limit.Count(), what, by.Limit.Period(), told(by.RetryAfter))
}

// ever enters what the limits of a project that has used nothing say.
func (l *ProjectLimits) ever(ask *amounts, o *outcome) {
	if l == nil {
		return
	}
	var said []limit.Decision
	for _, c := range l.charge(nil, "", ask) {
		for _, each := range c.Limits {
			said = append(said, new(limit.Account).Check(each, 0, c.N))
		}
	}
	o.hearProject(l, said)
}
