package admin

import (
	"context"
	"net/http"
	"net/url"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// reach says how a caller that is bound to a project may use a route.
type reach uint8

const (
	forAll    reach = iota // only callers that are bound to no project may
	ofPath                 // the project in the path must be theirs, and to be changed below theirs
	ofProject              // the parameter project must be theirs, which is the default
	ofBelow                // so must the parameter below
	ofKey                  // the key in the path must be of their project
	checked                // the route itself looks at what is theirs
)

type callerKey struct{}

// withCaller returns a request that knows who makes it.
func withCaller(r *http.Request, c caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns who makes a request.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// permit returns why a caller may not use a route, or nil. It narrows the query of a caller that is bound to a project.
func (a *Admin) permit(r *http.Request, to *route) *Problem {
	c := callerOf(r)
	if to.role != "" && !c.role.Includes(to.role) {
		return problemf(http.StatusForbidden, "this needs the role %s: yours is %s", to.role, c.role)
	}
	if c.project == "" || to.role == "" {
		return nil
	}
	switch to.reach {
	case ofPath:
		id := r.PathValue("project")
		if !keys.Within(id, c.project) {
			return c.notTheirs(id)
		}
		if id == c.project && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return problemf(http.StatusForbidden, "you are bound to project %q: you may change what is below it, and not its own limits", id)
		}
	case ofProject:
		return c.narrow(r, "project")
	case ofBelow:
		return c.narrow(r, "below")
	case ofKey:
		if k := a.keyOf(r.PathValue("id")); k == nil || !keys.Within(k.Project, c.project) {
			return problemOf(keys.ErrUnknown) // as if there were none
		}
	case forAll:
		return problemf(http.StatusForbidden, "you are bound to project %q, and this concerns all projects", c.project)
	}
	return nil
}

// narrow sets a parameter to the project of a caller, unless it names that or one below it.
func (c caller) narrow(r *http.Request, parameter string) *Problem {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(q[parameter]) > 1 {
		return nil // which the route refuses
	}
	if id := q.Get(parameter); id == "" {
		q.Set(parameter, c.project)
	} else if !keys.Within(id, c.project) {
		return c.notTheirs(id)
	}
	r.URL.RawQuery = q.Encode()
	return nil
}

// check returns a problem if a project is not the caller's.
func (c caller) check(id string) error {
	if keys.Within(id, c.project) {
		return nil
	}
	return c.notTheirs(id)
}

func (c caller) notTheirs(id string) *Problem {
	return problemf(http.StatusForbidden, "you are bound to project %q, and %.80q is not below it", c.project, id)
}
