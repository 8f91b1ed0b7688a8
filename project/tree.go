package project

import (
	"errors"
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/message"
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
		err = errors.New("ratelimit: Dedicated is set: it must not be for a project inside of another, whose share is divided")
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

// planOf returns the plan of a project: its own, or that of the template that fits best, or
// that of every project. Projects inside of others have no limits without one of the former two.
func (l *Limiter) planOf(id string) *plan {
	if p := l.plans.of(id); p != nil {
		return p
	}
	if strings.IndexByte(id, '/') < 0 {
		return l.usual.Load()
	}
	if l.plans.templates.Load() > 0 {
		if p := l.planOfTemplate(strings.Split(id, "/")); p != nil {
			return p
		}
	}
	return l.inner
}

// planOfTemplate returns the plan of the template that fits the names of a project best, or nil.
// Of two templates, that one fits better which has a name where the other first has a *.
func (l *Limiter) planOfTemplate(names []string) *plan {
	pattern := make([]string, len(names))
	for stars := 1; stars < 1<<len(names); stars++ { // the highest bit is the first name
		for i, name := range names {
			if pattern[i] = name; stars&(1<<(len(names)-1-i)) != 0 {
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
func (l *Limiter) newScope(id string) (*admission.Scope, error) {
	above := parentOf(id)
	if above == "" {
		return l.engine.NewOwn(keyOf(id), id), nil
	}
	parent, err := l.scopes.of(above)
	if err != nil {
		return nil, err
	}
	l.nested.Store(true)
	return l.engine.NewBelow(parent, keyOf(id), id), nil
}
