package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/figures"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// picture is where all models and projects stand at one time.
type picture struct {
	admin    *Admin
	at       time.Time
	totals   Totals
	models   []*standing // those closest to their limits first
	projects []*standing // those closest to their limits first
}

// standing is where a model or a project stands. Its row is made when it is asked for.
type standing struct {
	name       string
	pressure   float64
	closest    string
	dimensions []Dimension
	recent     *figures.Recent // never nil
	waiting    int
	longest    time.Duration
	weight     int
	pause      *RowPause
	provider   []ProviderLimit
}

var noCalls figures.Recent

// look looks at all models and projects.
func (a *Admin) look(ctx context.Context) *picture {
	p := &picture{admin: a, at: time.Now().UTC()}
	models, projects := a.recents(&p.totals)
	shares := map[string][]Dimension{} // by project
	for _, name := range a.shownModels(models) {
		p.models = append(p.models, a.lookAtModel(p.at, name, models[name], shares))
	}
	for _, id := range a.shownProjects(projects) {
		p.projects = append(p.projects, a.lookAtProject(ctx, p.at, id, projects[id], shares[id]))
	}
	for _, s := range p.models {
		p.totals.Waiting += s.waiting
	}
	slices.SortFunc(p.models, byPressure)
	slices.SortFunc(p.projects, byPressure)
	return p
}

// recents returns what became of the calls of 15 minutes, by model and by project. A project's
// figures include those of the projects inside of it.
func (a *Admin) recents(totals *Totals) (models, projects map[string]*figures.Recent) {
	models, projects = map[string]*figures.Recent{}, map[string]*figures.Recent{}
	a.gateway.Figures().Each(func(of figures.Name, r *figures.Recent) {
		totals.Passed += r.Minute.Passed
		totals.Denied += r.Minute.Denied
		if of.Model != "" {
			addTo(models, of.Model, r)
		}
		for id := of.Project; id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] {
			addTo(projects, id, r)
		}
	})
	return models, projects
}

func addTo(all map[string]*figures.Recent, name string, r *figures.Recent) {
	if all[name] == nil {
		all[name] = new(figures.Recent)
	}
	all[name].Add(r)
}

// byPressure orders standings by what is closest to its limit. Of those that are equally close, the one
// with more calls comes first.
func byPressure(a, b *standing) int {
	return cmp.Or(cmp.Compare(b.pressure, a.pressure), cmp.Compare(b.waiting, a.waiting),
		cmp.Compare(b.recent.Passed+b.recent.Denied, a.recent.Passed+a.recent.Denied), cmp.Compare(a.name, b.name))
}

// add adds a dimension, and finds out whether it is the closest to its limit.
func (s *standing) add(d Dimension) {
	d.Remaining = max(d.Limit-d.Used, 0)
	s.dimensions = append(s.dimensions, d)
	if part := d.Used / d.Limit; d.Limit > 0 && part > s.pressure {
		s.pressure, s.closest = part, d.Name
	}
}

// lookAtProject looks at a project. shares are its shares of the limits of models.
func (a *Admin) lookAtProject(ctx context.Context, now time.Time, id string, recent *figures.Recent, shares []Dimension) *standing {
	limiter := a.gateway.Projects()
	limit := limiter.Limit(id)
	s := &standing{name: id, recent: cmp.Or(recent, &noCalls), weight: limit.Weight}
	if d, err := limiter.Peek(ctx, id); err == nil {
		for _, w := range d.Windows() {
			if w.Owner == id {
				s.add(windowDimension(&w, now))
			}
		}
		if limit.MaxConcurrent > 0 {
			s.add(Dimension{Name: project.Concurrent, Setting: "max_concurrent", Unit: "calls", Limit: float64(limit.MaxConcurrent), Used: float64(d.Concurrent)})
		}
	}
	for _, d := range shares {
		s.add(d)
	}
	return s
}

// windowDimension returns the dimension of a project's window.
func windowDimension(s *project.Standing, now time.Time) Dimension {
	w := s.Window
	d := Dimension{Name: w.Name, Setting: windowSettings[w.Name], Unit: "requests", Limit: float64(w.Count), Used: float64(w.Count - s.Remaining)}
	switch {
	case w.Tokens:
		d.Unit = "tokens"
	case w.Dollars:
		d.Unit, d.Limit, d.Used = "dollars", d.Limit/float64(price.Dollar), d.Used/float64(price.Dollar)
	}
	if !w.Total() && w.Period > time.Minute && d.Used > 0 {
		d.ResetsAt = now.Add(s.ResetAfter).Round(time.Second)
	}
	return d
}

// windowSettings maps the windows of projects to the fields that set them.
var windowSettings = map[string]string{
	"minute": "requests_per_minute", "hour": "requests_per_hour", "day": "requests_per_day",
	"tokens-minute": "tokens_per_minute", "tokens-hour": "tokens_per_hour", "tokens-day": "tokens_per_day", "tokens-month": "tokens_per_month",
	"dollars-hour": "dollars_per_hour", "dollars-day": "dollars_per_day", "dollars-week": "dollars_per_week", "dollars-month": "dollars_per_month", "dollars": "dollars",
}

// modelRows returns the rows of the models that an overview has.
func (p *picture) modelRows() []Row { return p.rows(p.models[:min(len(p.models), maxModels)]) }

// projectRows returns n rows of projects from a place on.
func (p *picture) projectRows(from, n int) []Row {
	from = min(from, len(p.projects))
	return p.rows(p.projects[from:min(from+n, len(p.projects))])
}

func (p *picture) rows(list []*standing) []Row {
	rows := make([]Row, len(list))
	for i, s := range list {
		rows[i] = s.row()
	}
	return rows
}

func (s *standing) row() Row {
	r := s.recent
	return Row{
		Name: s.name, Pressure: s.pressure, Closest: s.closest, Pause: s.pause, Weight: s.weight,
		Dimensions: append([]Dimension{}, s.dimensions...),
		Waiting:    s.waiting, LongestWait: s.longest.Seconds(),
		Minute: Minute{
			Passed: r.Minute.Passed, Failed: r.Minute.Failed, Denied: r.Minute.Denied,
			Tokens: r.Minute.Input + r.Minute.Output, Dollars: price.Amount(r.Minute.Dollars),
		},
		DeniedBy: r.Denials(), Spark: r.PassedBy[:], SparkDenied: r.DeniedBy[:],
		Estimated: r.Estimated, Actual: r.Actual, Provider: s.provider,
	}
}
