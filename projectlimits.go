package ratelimit

import (
	"fmt"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// ProjectLimits is what a project may use, of all models together. Do not change
// it once it was handed out.
type ProjectLimits struct {
	Requests []limit.Limit // on requests
	Tokens   []limit.Limit // on tokens, prompt and output together
	Names    []string      // of all of these, in order

	Weight     int // of the project among those who wait: 0 is 1
	MaxWaiting int // of the project's calls for one model: 0 is any number
}

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
	return list
}

// hearProject enters what the limits of a project say.
func (o *outcome) hearProject(l *ProjectLimits, said []limit.Decision) {
	o.project = &ProjectStanding{l, said}
	o.own = store.Deciding(said).RetryAfter
	o.denied = o.denied || o.own > 0
}

// exceeded returns the name of the limit that denies longest.
func (s *ProjectStanding) exceeded() string {
	i := slices.IndexFunc(s.Decisions, func(d limit.Decision) bool { return !d.Allowed })
	for k, d := range s.Decisions {
		if d.RetryAfter > s.Decisions[i].RetryAfter {
			i = k
		}
	}
	return s.Limits.name(i)
}

// name returns the name of a limit, which may have none.
func (l *ProjectLimits) name(i int) string {
	if i < len(l.Names) {
		return l.Names[i]
	}
	return "project"
}

// reason says for people what denies.
func (s *ProjectStanding) reason() string {
	by := store.Deciding(s.Decisions)
	name := s.exceeded()
	what := "requests"
	if strings.HasPrefix(name, "tokens") {
		what = "tokens"
	}
	if by.RetryAfter == Never {
		return fmt.Sprintf("more than all %d %s of the project in %v", by.Limit.Count(), what, by.Limit.Period())
	}
	return fmt.Sprintf("the project's %d %s in %v are used up: try again in %v", by.Limit.Count(), what, by.Limit.Period(), by.RetryAfter)
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
