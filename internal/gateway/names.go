package gateway

import (
	"reflect"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// namesInUse is the users, or the runs, of projects whose counters the state may hold. Clients may invent any number of
// names, so that only some are counted on their own. All further ones are counted as one, which can only deny more. A
// name goes when its counters are full again.
type namesInUse struct {
	most    int // names of one project
	mostAll int // names of all projects together

	mu     sync.Mutex
	of     map[string]*names // by project; each has a name at least
	total  int
	pruned int64 // when names of any project were last looked for that may go
}

// names is the names of a project.
type names struct {
	last   map[string]int64 // when each was last used, in Unix nanoseconds
	pruned int64            // when names of this project were last looked for that may go
}

const (
	mostNames    = 100_000
	mostAllNames = 10 * mostNames // of all projects together
	pruneNames   = int64(time.Minute)

	// sharedName is the name of all users, or runs, beyond those that are counted on their own.
	sharedName = "~others"
)

func newNamesInUse() *namesInUse {
	return &namesInUse{most: mostNames, mostAll: mostAllNames, of: map[string]*names{}}
}

// counts reports whether a name of a project is counted on its own: it is in use, or there is room for it. stay returns
// how long a name stays in use.
func (n *namesInUse) counts(project, name string, now int64, stay func(project, name string) time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.total >= n.mostAll && now-n.pruned >= pruneNames {
		n.pruneAll(now, stay)
	}
	of := n.of[project]
	if of == nil {
		return n.total < n.mostAll
	}
	if _, known := of.last[name]; known {
		return true
	}
	if len(of.last) >= n.most && now-of.pruned >= pruneNames {
		n.prune(project, of, now, stay)
	}
	return len(of.last) < n.most && n.total < n.mostAll
}

// prune removes the names of a project that are not in use any more.
func (n *namesInUse) prune(project string, of *names, now int64, stay func(project, name string) time.Duration) {
	of.pruned = now
	for name, last := range of.last {
		if now-last > int64(stay(project, name)) {
			delete(of.last, name)
			n.total--
		}
	}
	if len(of.last) == 0 {
		delete(n.of, project)
	}
}

// pruneAll prunes projects, in random order, until it has looked at about as many names as one project may have: calls
// wait for it.
func (n *namesInUse) pruneAll(now int64, stay func(project, name string) time.Duration) {
	n.pruned = now
	left := n.most
	for project, of := range n.of {
		left -= len(of.last)
		n.prune(project, of, now, stay)
		if left <= 0 {
			return
		}
	}
}

// use records that a call with a name of a project has passed. It does nothing for a name that is not known and finds no
// room: its calls are charged to the shared account, or it has no limit.
func (n *namesInUse) use(project, name string, now int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.of[project]
	if of == nil {
		of = &names{last: map[string]int64{}}
	}
	if _, known := of.last[name]; !known {
		if len(of.last) >= n.most || n.total >= n.mostAll {
			return
		}
		n.total++
	}
	of.last[name], n.of[project] = now, of
}

// countedUser returns the name under which a user of the request's project is counted: its own, unless the project has
// too many users whose limits are in use, and nobody has named this one.
func (x *exchange) countedUser(user string) string {
	limitOf := func(of, user string) project.Limit { return x.g.limits.Projects.Limit(of + "/" + user) }
	stay := func(of, user string) time.Duration { return longestWindow(limitOf(of, user)) }
	if x.g.users.counts(x.Project, user, x.Time.UnixNano(), stay) || limitOf(x.Project, user) == (project.Limit{}) || x.g.isNamed(x.cfg, x.Project+"/"+user) {
		return user
	}
	return sharedName
}

// isNamed reports whether the file or an operator has named a project: it has a limit of its own, or something else.
func (g *Gateway) isNamed(cfg *config.Config, path string) bool {
	set := g.controls.State().Project(path)
	return cfg.Projects[path] != nil || hidden.Of[engine.Projects](g.limits.Projects).HasLimit(path) || !reflect.ValueOf(set).IsZero()
}

// countedRun is countedUser of a run.
func (x *exchange) countedRun(run string) string {
	stay := func(string, string) time.Duration {
		if x.cfg.Runs.Expires > 0 {
			return x.cfg.Runs.Expires
		}
		return project.DefaultRunExpires
	}
	if x.g.runs.counts(x.Project, run, x.Time.UnixNano(), stay) {
		return run
	}
	return sharedName
}

// useNames records that a call of the user and the run has passed, so that the state holds counters of them.
func (x *exchange) useNames() {
	if x.User != "" {
		x.g.users.use(x.Project, x.User, x.Time.UnixNano())
	}
	if x.Run != "" {
		x.g.runs.use(x.Project, x.Run, x.Time.UnixNano())
	}
}

// longestWindow returns how long after its last call nothing of a limit is in use any more.
func longestWindow(l project.Limit) time.Duration {
	longest := time.Hour + 10*time.Minute // the hour, or a slot
	for _, k := range kind.Of(kind.Project) {
		if windowFields.Get(&l, k) > 0 {
			longest = max(longest, inUse[k.Window()])
		}
	}
	return longest
}

// windowFields finds the limits in a limit of a project.
var windowFields = kind.NewFields[project.Limit](kind.Project)

// inUse is how long after a call something of a window may be in use, if that is more than an hour.
var inUse = map[kind.Window]time.Duration{
	kind.Day:   25*time.Hour + time.Minute, // a day on which a clock is set back
	kind.Week:  8 * 24 * time.Hour,
	kind.Month: 32 * 24 * time.Hour,
	kind.Total: 100 * 366 * 24 * time.Hour, // it never comes back
}
