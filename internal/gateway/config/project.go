package config

import (
	"cmp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// The fields with limits of a project, and of a run.
var (
	limitFields = kind.NewFields[project.Limit](kind.Project)
	runFields   = kind.NewFields[Runs](kind.Run)
)

// limits returns how the limits of an owner are read.
func limits[T any](fields *kind.Fields[T], to *T, owner kind.Owner) (list []strictyaml.Field) {
	for _, k := range kind.Of(owner) {
		switch to := fields.In(to, k).Addr().Interface().(type) {
		case *int:
			list = append(list, field(k.Setting(), amount(to)))
		case *price.Amount:
			list = append(list, field(k.Setting(), budget(to)))
		}
	}
	return list
}

// amount reads a limit; 0 is no limit.
func amount(to *int) func(yamlValue) { return strictyaml.Count(to, 0, maxAmount) }

// budget reads a limit in dollars; 0 is no limit.
func budget(to *price.Amount) func(yamlValue) { return dollars(to, maxAmount) }

// reserve reads what calls reserve of limits.
func reserve(to *project.Reserve) func(yamlValue) {
	return strictyaml.OneOf(to, project.ReserveMost, project.ReserveExpected)
}

// onOverrun reads what becomes of streams that use more than they have reserved.
func onOverrun(to *project.OnOverrun) func(yamlValue) {
	return strictyaml.OneOf(to, project.OverrunDebt, project.OverrunCut)
}

const (
	maxWeight   = 1 << 20
	maxPriority = 1000

	MinFit = 16 // the lowest fit_min: OpenAI refuses a lower max_output_tokens
	MaxFit = 1 << 20
)

// read reads the fields of a project. A field that the file does not have keeps its value.
func (pr *Project) read(at yamlValue) {
	l := &pr.Limit
	at.Fields(append(limits(limitFields, l, kind.Project),
		field("resets", resets(&l.Resets)),
		field("reserve", reserve(&l.Reserve)),
		field("on_overrun", onOverrun(&l.OnOverrun)),
		field("weight", strictyaml.Count(&l.Weight, 1, maxWeight)),
		field("priority", strictyaml.Count(&l.Priority, -maxPriority, maxPriority)),
		field("min_share", statefile.Percent(&l.MinShare)),
		field("max_share", statefile.Percent(&l.MaxShare)),
		field("dedicated", strictyaml.Flag(&l.Dedicated)),
		field("max_wait", strictyaml.Duration(&pr.MaxWait, 0, maxTimeout)),
		field("unknown_usage", strictyaml.OneOf(&pr.UnknownUsage, UsageReserved, UsageSeen)),
		field("failed_calls", strictyaml.OneOf(&pr.FailedCalls, FailedFree, FailedReserved)),
		field("fit", strictyaml.Flag(&pr.Fit)),
		field("fit_min", strictyaml.Count(&pr.FitMin, MinFit, MaxFit)),
		field("models", pr.readModels),
		field("mode", mode(&pr.Mode)),
	)...)
	switch {
	case l.MaxShare > 0 && l.MinShare > l.MaxShare:
		at.At("min_share").Fault("%v: it must not be more than max_share, which is %v", l.MinShare, l.MaxShare)
	case l.Dedicated && l.MinShare == 0:
		at.At("dedicated").Fault("it keeps min_share free: min_share must be set")
	}
}

// readDefaults reads the rules for projects that the file does not name. They can promise none
// of these projects a part of a quota.
func (pr *Project) readDefaults(at yamlValue) {
	pr.read(at)
	if pr.Limit.MinShare > 0 {
		at.At("min_share").Fault("%v: it must be left out here, because every project that is not named would have that much", pr.Limit.MinShare)
	}
}

func (pr *Project) readModels(at yamlValue) {
	pr.Models = nil
	at.Items(func(at yamlValue) {
		if name, ok := at.Text("the name of a model, or a pattern"); ok {
			pr.Models = append(pr.Models, name)
		}
	})
	if len(pr.Models) == 0 && !at.Faulty() {
		at.Fault(`it is empty: it must name one model at least; "*" is all of them`)
	}
}

// entry is a project in a file.
type entry struct {
	path       string
	key, value yamlValue
}

// readProjects reads the projects of all files, those above others first: a field that a project does not have
// is as above it.
func (c *Config) readProjects(r *reader, sections []yamlValue) {
	var all []entry
	for _, at := range sections {
		at.Entries(func(path string, key, value yamlValue) {
			if err := project.CheckPath(path); err != nil {
				key.Fault("%s", message.Detail(err, project.ErrInvalid))
				return
			}
			if strings.Contains(path, "*") && !project.IsTemplate(path) {
				key.Warn("the * in it is a character like any other: it stands for every name only if the name is * alone, as in acme/*")
			}
			if other, taken := r.projects[path]; taken {
				key.Fault("duplicate project %s, which is at %s already: it must occur once", message.Quote(path), other.key.Place())
				return
			}
			r.projects[path] = entry{path, key, value}
			all = append(all, r.projects[path])
		})
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/"))
	})
	tree := NewTree(c)
	for _, e := range all {
		pr := tree.inherited(e.path)
		pr.read(e.value)
		tree.add(e.path, pr)
		c.Projects[e.path] = pr
	}
	c.checkShares(all)
}

// inherited returns the settings that a project has before its own are read. A project below no other
// project of the file gets the defaults. Other projects, and templates, get from the nearest project above
// them how their calls are treated, but no limits: the limits above hold for them anyway.
func (t *Tree) inherited(path string) *Project {
	var nearest *Project
	for i := range len(path) {
		if path[i] == '/' {
			nearest = cmp.Or(t.root.find(path[:i]), nearest)
		}
	}
	if nearest == nil && !project.IsTemplate(path) {
		pr := *t.defaults
		pr.Models = slices.Clone(pr.Models)
		return &pr
	}
	nearest = cmp.Or(nearest, t.defaults)
	return &Project{
		Limit:   project.Limit{Weight: 1, Resets: nearest.Limit.Resets, Reserve: nearest.Limit.Reserve, OnOverrun: nearest.Limit.OnOverrun},
		MaxWait: nearest.MaxWait, UnknownUsage: nearest.UnknownUsage, FailedCalls: nearest.FailedCalls,
		Fit: nearest.Fit, FitMin: nearest.FitMin,
	}
}

// checkShares finds minimum shares of templates, and minimum shares that no quota has room for.
func (c *Config) checkShares(all []entry) {
	limits := map[string]project.Limit{}
	var last entry
	for _, e := range all {
		switch l := c.Projects[e.path].Limit; {
		case l.MinShare == 0:
		case project.IsTemplate(e.path):
			e.value.At("min_share").Fault("%v: it must be left out in a template, because every project that has the template would have that much", l.MinShare)
		default:
			limits[e.path], last = l, e
		}
	}
	if err := project.CheckShares(limits); err != nil {
		last.value.At("min_share").Fault("%s", message.Plain(err))
	}
}
