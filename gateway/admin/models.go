package admin

import (
	"cmp"
	"maps"
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/gateway/figures"
	"dappco.re/go/core/go-ratelimit/project"
)

// shownModels returns the models that an overview shows: those with a quota and those that were called,
// but not those whose quota is only guessed while nobody calls them.
func (a *Admin) shownModels(called map[string]*figures.Recent) []string {
	names := slices.Collect(maps.Keys(called))
	rl := a.gateway.Models()
	for name := range rl.Quotas() {
		if called[name] == nil && (a.gateway.Origin(name) != gateway.Guessed || rl.Paused(name) > 0) {
			names = append(names, name)
		}
	}
	return names
}

// shownProjects returns the projects that an overview shows: those that have a limit or a key, and
// those that were called. Templates are no projects.
func (a *Admin) shownProjects(called map[string]*figures.Recent) []string {
	ids := slices.Collect(maps.Keys(called))
	add := func(id string) {
		if called[id] == nil && !project.IsTemplate(id) {
			ids = append(ids, id)
		}
	}
	for id := range a.gateway.Projects().Limits() {
		add(id)
	}
	for id := range a.gateway.Config().Projects {
		add(id)
	}
	for _, k := range a.gateway.Keys().List() {
		add(k.Project)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// modelDimensions are the limits of a quota.
var modelDimensions = []struct {
	name, setting, unit string
	of                  func(s *ratelimit.ModelStats) (used, most int)
}{
	{"rpm", "max_rpm", "requests", func(s *ratelimit.ModelStats) (int, int) { return s.RPM, s.MaxRPM }},
	{"tpm", "max_tpm", "tokens", func(s *ratelimit.ModelStats) (int, int) { return s.TPM, s.MaxTPM }},
	{"input_tpm", "max_input_tpm", "tokens", func(s *ratelimit.ModelStats) (int, int) { return s.InputTPM, s.MaxInputTPM }},
	{"output_tpm", "max_output_tpm", "tokens", func(s *ratelimit.ModelStats) (int, int) { return s.OutputTPM, s.MaxOutputTPM }},
	{"rpd", "max_rpd", "requests", func(s *ratelimit.ModelStats) (int, int) { return s.RPD, s.MaxRPD }},
	{"tpd", "max_tpd", "tokens", func(s *ratelimit.ModelStats) (int, int) { return s.TPD, s.MaxTPD }},
	{"concurrent", "max_concurrent", "calls", func(s *ratelimit.ModelStats) (int, int) { return s.Concurrent, s.MaxConcurrent }},
}

// lookAtModel looks at a model, and adds the shares of projects to shares.
func (a *Admin) lookAtModel(now time.Time, name string, recent *figures.Recent, shares map[string][]Dimension) *standing {
	rl := a.gateway.Models()
	s := &standing{name: name, recent: cmp.Or(recent, &noCalls), waiting: rl.Waiting(name)}
	lent := a.addShares(name, shares)
	if d := rl.Decide(name, 0); d.Code != ratelimit.DecisionStoreLost {
		for _, of := range modelDimensions {
			if used, most := of.of(&d.Stats); most > 0 {
				sum := lent[of.name]
				s.add(Dimension{
					Name: of.name, Setting: of.setting, Unit: of.unit, Limit: float64(most), Used: float64(used),
					Lent: float64(sum.Lent), Borrowed: float64(sum.Borrowed),
				})
			}
		}
	}
	if left := rl.Paused(name); left > 0 {
		s.pause = &RowPause{Reason: "the provider takes no calls for now", Until: now.Add(left).Round(time.Second), Remaining: left.Seconds()}
	}
	for _, said := range a.gateway.Said(name) {
		s.provider = append(s.provider, ProviderLimit{said.Name, said.Limit, said.Remaining, said.Used, said.At.UTC()})
	}
	return s
}

// addShares adds the shares that projects have of a model's limits to shares. It returns what is lent
// and borrowed of each limit in all.
func (a *Admin) addShares(model string, shares map[string][]Dimension) map[string]ratelimit.LimitShare {
	sums := map[string]ratelimit.LimitShare{}
	for _, p := range a.gateway.Models().Shares(model) {
		for _, l := range p.Limits {
			sum := sums[l.Name]
			sum.Lent += l.Lent
			sum.Borrowed += l.Borrowed
			sums[l.Name] = sum
			shares[p.Project] = append(shares[p.Project], Dimension{
				Name: l.Name + "_share", Unit: shareUnits[l.Name], Model: model,
				Limit: float64(l.Share), Used: float64(l.Used), Lent: float64(l.Lent), Borrowed: float64(l.Borrowed),
			})
		}
	}
	return sums
}

// shareUnits are what the limits count that projects share.
var shareUnits = map[string]string{}

func init() {
	for _, d := range modelDimensions {
		shareUnits[d.name] = d.unit
	}
}
