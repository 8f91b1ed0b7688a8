package admin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// lookout knows where all models and projects stand. It keeps what it has seen from one look to the
// next, so that a look costs little: what became of calls is added up each time, but of 1,000 projects
// that nobody looks at, only some are asked for what is used of their limits.
type lookout struct {
	admin  *Admin
	memory bool // to ask a limit costs next to nothing

	mu       sync.Mutex // locked during a look
	looks    uint64
	at       time.Time // of the last look
	totals   Totals
	others   []figures.Report // of the other gateways
	fleet    OfFleet
	gathered time.Time // when the others were asked
	models   *standings
	projects *standings
}

const (
	askedEach   = 250                     // how many projects each look asks beside those that are shown
	maxAge      = 5 * time.Second         // how old an answer of a store on disk or elsewhere may be, if nobody watches
	maxAsking   = 32                      // questions at a time to such a store
	gatherEvery = 1900 * time.Millisecond // how often a look asks the other gateways: every second one by those who watch
	lookTimeout = 2 * time.Second         // of one look: what has not answered by then is asked again by the next
)

func newLookout(a *Admin) *lookout {
	return &lookout{admin: a, memory: a.gateway.Config().State == config.Memory, models: newStandings(), projects: newStandings()}
}

// look looks at all models and projects. A look by one who watches asks only some projects again: those
// that were among the first, and of the others 250.
func (l *lookout) look(ctx context.Context, watching bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l.looks++
	l.at = time.Now().UTC()
	if l.at.Sub(l.gathered) >= gatherEvery {
		l.gathered = l.at
		l.others, l.fleet = l.admin.otherFigures(ctx)
	}
	l.addRecents()
	l.addWaiting()
	l.addNames()
	l.models.sweep(l.looks)
	l.projects.sweep(l.looks)
	l.ask(l.models.list, func(s *standing) { l.askModel(s) })
	l.addShares()
	l.ask(l.due(watching), func(s *standing) { l.askProject(ctx, s) })
	l.models.sort()
	l.projects.sort()
}

// addRecents adds up what became of the calls of 15 minutes. A project's figures include those of the
// projects below it.
func (l *lookout) addRecents() {
	l.totals = Totals{}
	add := func(of figures.Name, r *figures.Recent) {
		if of.Model != "" {
			l.models.see(of.Model, l.looks).recent.Add(r)
		}
		for id := of.Project; id != ""; id = above(id) {
			l.projects.see(id, l.looks).recent.Add(r)
		}
	}
	l.admin.gateway.Figures().Each(func(of figures.Name, r *figures.Recent) {
		l.totals.add(&r.Minute)
		add(of, r)
	})
	for i := range l.others {
		l.totals.add(&l.others[i].Totals)
		for k := range l.others[i].Lots {
			add(l.others[i].Lots[k].Name, &l.others[i].Lots[k].Recent)
		}
	}
}

// add adds calls of the last minute.
func (t *Totals) add(s *figures.Sum) {
	t.Passed += s.Passed
	t.Failed += s.Failed
	t.Denied += s.Denied
	t.Refused += s.Refused
}

// above returns the project above one, or "".
func above(id string) string { return id[:max(strings.LastIndexByte(id, '/'), 0)] }

// addWaiting counts the calls that wait, as addRecents does those that have ended.
func (l *lookout) addWaiting() {
	add := func(project, model string, n int, waited time.Duration) {
		l.totals.Waiting += n
		if model != "" {
			l.models.see(model, l.looks).wait(n, waited)
		}
		for id := project; id != ""; id = above(id) {
			l.projects.see(id, l.looks).wait(n, waited)
		}
	}
	l.admin.gateway.Models().EachWaiting(func(project, model string, waited time.Duration) { add(project, model, 1, waited) })
	for i := range l.others {
		for _, w := range l.others[i].Waiting {
			add(w.Project, w.Model, w.Count, w.Longest)
		}
	}
}

// addNames adds what operators have named: models with limits, but not those whose limits are only guessed
// while nobody calls them; and projects with a limit or a key. Templates are no projects.
func (l *lookout) addNames() {
	g := l.admin.gateway
	for name, q := range g.Models().Quotas() {
		if limits(q) && g.Origin(name) != gateway.Guessed || g.Models().Paused(name) > 0 {
			l.models.see(name, l.looks)
		}
	}
	for id := range hidden.Of[engine.Projects](g.Projects()).Limited() {
		if !project.IsTemplate(id) {
			l.projects.see(id, l.looks)
		}
	}
	for id := range g.Keys().Projects() {
		l.projects.see(id, l.looks)
	}
}

// quotaFields finds the maxima of a quota.
var quotaFields = kind.NewFields[ratelimit.ModelQuota](kind.Model)

// limits reports whether a quota limits anything.
func limits(q ratelimit.ModelQuota) bool {
	return slices.ContainsFunc(kind.Of(kind.Model), func(k kind.Kind) bool { return quotaFields.Get(&q, k) > 0 })
}

// due returns the projects that this look asks for what is used of their limits.
func (l *lookout) due(watching bool) []*standing {
	list := l.projects.list
	if l.memory && !watching {
		return list
	}
	turns := uint64(1 + len(list)/askedEach)
	due := make([]*standing, 0, min(len(list), 2*askedEach))
	for i, s := range list { // in the order of the last look
		switch {
		case s.asked.IsZero(), watching && i < rowCounts[len(rowCounts)-1], watching && (l.looks+s.turn)%turns == 0, !watching && l.at.Sub(s.asked) > maxAge:
			due = append(due, s)
		}
	}
	return due
}

// ask asks about each of the standings: one after the other in memory, and otherwise some at a time.
func (l *lookout) ask(list []*standing, about func(s *standing)) {
	if l.memory {
		for _, s := range list {
			about(s)
		}
		return
	}
	var asking sync.WaitGroup
	free := make(chan struct{}, maxAsking)
	for _, s := range list {
		free <- struct{}{}
		asking.Go(func() {
			about(s)
			<-free
		})
	}
	asking.Wait()
}
