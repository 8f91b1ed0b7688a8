package admin

import (
	"net/http"
	"net/url"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/project"
)

// Explanation is a decision with all limits that were asked, and what would have to change for a
// call that was denied.
type Explanation struct {
	ID       string       `json:"id"`
	Decision Decision     `json:"decision"`
	Limits   []AskedLimit `json:"limits"`   // empty if no limit was asked
	Sentence string       `json:"sentence"` // what became of the call, and why
	Advice   []string     `json:"advice"`   // what would have to change; empty for a call that was admitted
}

// AskedLimit is what one limit has answered to a call.
type AskedLimit struct {
	Scope      string      `json:"scope"`             // "model", "project", "user", "key" or "run"
	Owner      string      `json:"owner"`             // the name of the quota, the path of the project or the user, or the id of the key or the run
	Limit      string      `json:"limit"`             // the name of the limit, such as "max_tpm" or "tokens_per_day"
	Setting    string      `json:"setting,omitempty"` // the field that sets it, such as "max_tpm" or "tokens_per_day"
	Unit       string      `json:"unit"`              // "requests", "tokens", "calls" at a time, or "nanodollars"
	Max        int64       `json:"max"`
	Remaining  int64       `json:"remaining_before"`          // what was left before the call
	Reserved   int64       `json:"reserved_before,omitempty"` // what calls under way held of what was used, if the limit reserves the most of a call
	Needed     int64       `json:"needed"`                    // what the call needed
	Enough     bool        `json:"enough"`
	Unknown    bool        `json:"unknown,omitempty"`             // the store did not answer: nobody knows what was left, and this gateway decided
	Shadow     bool        `json:"shadow,omitempty"`              // the limit is in shadow: it counts, and denies nothing
	Never      bool        `json:"never,omitempty"`               // the call is larger than the limit
	RetryAfter float64     `json:"retry_after_seconds,omitempty"` // until the limit would have let the call pass
	ResetsAt   time.Time   `json:"resets_at,omitzero"`            // when nothing is used of it, if nothing else passes
	Share      *AskedShare `json:"share,omitempty"`               // the project's share of the limit, if that has denied the call
}

// AskedShare is a project's share of a limit of a model, or of a project above it, that has denied a call.
type AskedShare struct {
	Max      int64 `json:"max"`
	Used     int64 `json:"used"`
	Projects int   `json:"projects"` // how many projects share the limit, this one included
}

func (a *Admin) explain(r *http.Request) (any, error) {
	id := r.PathValue("id")
	all, err := gather[[]Explanation](r.Context(), a, "explain", url.Values{"id": {id}})
	if err != nil {
		return nil, err
	}
	for i, found := range all.answers {
		if len(found) > 0 && keys.Within(found[0].Decision.Project, callerOf(r).project) {
			e := found[0]
			e.Decision.Gateway = all.name(i)
			e.Limits, e.Advice = append([]AskedLimit{}, e.Limits...), append([]string{}, e.Advice...) // an empty list is no null
			return e, nil
		}
	}
	return nil, errNoRequest(id, all.OfFleet)
}

// ownExplanation returns the explanation of a request that this gateway has decided on, or none.
func (a *Admin) ownExplanation(q url.Values) (any, error) {
	id := q.Get("id")
	e, ok := a.gateway.Explain(id)
	if !ok {
		return []Explanation(nil), nil
	}
	limits := newAskedLimits(&e.Record, e.Limits, e.At)
	return []Explanation{{ID: id, Decision: newDecision(e.Record), Limits: limits, Sentence: sentence(&e), Advice: advice(&e, limits)}}, nil
}

// newAskedLimits returns what the limits have answered to a request at a time.
func newAskedLimits(rec *gateway.Record, answers []ratelimit.LimitAnswer, at time.Time) []AskedLimit {
	list := []AskedLimit{}
	for i := range answers {
		list = append(list, newAskedLimit(rec, &answers[i], at))
	}
	return list
}

func newAskedLimit(rec *gateway.Record, a *ratelimit.LimitAnswer, at time.Time) AskedLimit {
	l := AskedLimit{
		Limit: a.Limit, Setting: settingOf(a.Limit), Unit: a.Unit, Max: a.Max, Remaining: a.Max - a.Used - a.Elsewhere, Reserved: max(a.Reserved, 0), Needed: a.Needed,
		Enough: a.RetryAfter == 0, Shadow: a.Shadow, Never: a.RetryAfter == ratelimit.Never,
	}
	if a.Local {
		l.Unknown, l.Remaining, l.Reserved = true, 0, 0
	} else if a.Shadow {
		l.Enough = l.Remaining >= l.Needed
	}
	l.Scope, l.Owner = rec.ScopeOf(a.Owner)
	if !l.Never {
		l.RetryAfter = a.RetryAfter.Seconds()
	}
	if a.ResetAfter > 0 && a.ResetAfter != ratelimit.Never && !a.Local {
		l.ResetsAt = at.Add(a.ResetAfter).UTC()
	}
	if a.Share != (project.DeniedShare{}) {
		l.Share = &AskedShare{a.Share.Max, a.Share.Used, a.Share.Projects}
	}
	return l
}
