package project

import (
	"errors"
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/store"
)

// every is the name in a template that stands for every name.
const every = "*"

// parentOf returns the id of the project above another, or "" for one that has none.
func parentOf(id string) string {
	return id[:max(strings.LastIndexByte(id, '/'), 0)]
}

// IsTemplate reports whether a path is a template's: one of its names is *, which stands for every
// name.
func IsTemplate(path string) bool {
	if strings.IndexByte(path, '*') < 0 {
		return false
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == every {
			return true
		}
	}
	return false
}

// checkLimit returns what is wrong with the limit of a project or of a template.
func checkLimit(id string, limit Limit) error {
	if err := checkPath(id); err != nil {
		return err
	}
	err := limit.Validate()
	switch {
	case err != nil:
	case IsTemplate(id):
		err = checkTemplate(id, limit)
	case limit.Dedicated && parentOf(id) != "":
		err = errors.New("ratelimit: Dedicated is set: it must not be for a project below another, whose share is divided")
	}
	if err != nil {
		return fmt.Errorf("ratelimit: the limit of project %q: %s", id, message.Plain(err))
	}
	return nil
}

func checkTemplate(id string, limit Limit) error {
	switch {
	case id == every:
		return errors.New("this is the default limit, which is set in another way")
	case limit.MinShare > 0:
		return fmt.Errorf("MinShare is %v: it must be 0 in a template, because every project that has the template would have that much", limit.MinShare)
	}
	return nil
}

// planOf returns the plan of a project: that which was set for it, or that of every project. A
// project below one for which a plan was set has no limits without one of its own.
func (l *Limiter) planOf(id string) *plan {
	if p := l.setPlan(id); p != nil {
		return p
	}
	if l.rootOf(id) != id {
		return l.inner
	}
	return l.usual.Load()
}

// setPlan returns the plan that was set for a project: its own, or that of the template that fits
// best, or nil.
func (l *Limiter) setPlan(id string) *plan {
	if p := l.plans.of(id); p != nil {
		return p
	}
	if strings.IndexByte(id, '/') < 0 || l.plans.templates[namesOf(id)].Load() == 0 {
		return nil
	}
	return l.planOfTemplate(strings.Split(id, "/"))
}

// rootOf returns the outermost project to which calls of a project are charged: of those above it,
// the first for which a plan was set, or the project itself if there is none. Names above that one
// are names and not projects: two projects below them have nothing in common.
func (l *Limiter) rootOf(id string) string {
	for end := range len(id) {
		if id[end] == '/' && l.setPlan(id[:end]) != nil {
			return id[:end]
		}
	}
	return id
}

// isRooted reports whether the scopes above a project's are those that it should have.
func (l *Limiter) isRooted(id string, scope *engine.Scope) bool {
	return scope.Root().Name == l.rootOf(id)
}

// planOfTemplate returns the plan of the template that fits the names of a project best, or nil.
// Of two templates, that one fits better which has a name where the other first has a *.
func (l *Limiter) planOfTemplate(names []string) *plan {
	pattern := make([]string, len(names))
	for stars := 1; stars < 1<<len(names); stars++ { // the highest bit is the first name
		for i, name := range names {
			pattern[i] = name
			if stars&(1<<(len(names)-1-i)) != 0 {
				pattern[i] = every
			}
		}
		if p := l.plans.of(strings.Join(pattern, "/")); p != nil {
			return p
		}
	}
	return nil
}

// newScope returns a scope of a project, which knows those above it.
func (l *Limiter) newScope(id string) (*engine.Scope, error) {
	if strings.IndexByte(id, '/') < 0 {
		return l.engine.NewOwn(keyOf(id), id), nil
	}
	l.nested.Store(true)
	if l.rootOf(id) == id {
		return l.engine.NewOwn(keyOf(id), id), nil
	}
	parent, err := l.scopes.of(parentOf(id))
	if err != nil {
		return nil, err
	}
	return l.engine.NewBelow(parent, keyOf(id), id), nil
}

// scopeOf returns the scope of the project of a call. If the call says that its project is a user of
// another, it is charged to that one too, whether or not a plan was set for it.
func (l *Limiter) scopeOf(of engine.Owners) (*engine.Scope, error) {
	base := of.Project
	if len(of.RunProject) < len(base) && strings.HasPrefix(base, of.RunProject) && base[len(of.RunProject)] == '/' {
		base = of.RunProject
	}
	scope := l.scopes.known(of.Project)
	switch {
	case l.closed.Load():
		return nil, store.ErrClosed
	case scope != nil && len(scope.Root().Name) <= len(base):
		return scope, nil
	case CheckID(of.Project) != nil:
		return nil, CheckID(of.Project)
	case len(l.rootOf(of.Project)) <= len(base):
		return l.scopes.of(of.Project)
	}
	return l.users.of(base + " " + of.Project)
}

// newUserScope returns the scope of a user of a project for which no plan was set. The ids of both have
// a space between them.
func (l *Limiter) newUserScope(ids string) (*engine.Scope, error) {
	base, id, _ := strings.Cut(ids, " ")
	l.nested.Store(true)
	of, above := l.scopes, parentOf(id)
	if above != base {
		of, above = l.users, base+" "+above
	}
	parent, err := of.of(above)
	if err != nil {
		return nil, err
	}
	return l.engine.NewBelow(parent, keyOf(id), id), nil
}

// isOfProject reports whether the scope of a user is below the one that its project has now, which follows
// the project's limits.
func (l *Limiter) isOfProject(ids string, scope *engine.Scope) bool {
	base, _, _ := strings.Cut(ids, " ")
	for scope.Name != base {
		scope = scope.Parent()
	}
	return scope == l.scopes.known(base)
}

// planOfUser returns the plan of a user of a project.
func (l *Limiter) planOfUser(ids string) *plan {
	_, id, _ := strings.Cut(ids, " ")
	if p := l.setPlan(id); p != nil {
		return p
	}
	return l.inner
}
