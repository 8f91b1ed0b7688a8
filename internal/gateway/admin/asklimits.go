package admin

import (
	"cmp"
	"context"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// newDimension returns a dimension of which so much is used.
func newDimension(name, setting, unit string, limit, used float64) Dimension {
	return Dimension{Name: name, Setting: setting, Unit: unit, Limit: limit, Used: used, Remaining: max(limit-used, 0)}
}

// askProject asks what is used of the limits of a project.
func (l *lookout) askProject(ctx context.Context, s *standing) {
	limiter := l.admin.gateway.Projects()
	limit := limiter.Limit(s.name)
	s.weight, s.limits = limit.Weight, nil
	d, err := limiter.Peek(ctx, s.name)
	if err != nil {
		s.asked = time.Time{} // the next look asks again
		return
	}
	s.asked = l.at
	for _, w := range d.Windows() {
		if w.Owner == s.name {
			s.limits = append(s.limits, windowDimension(&w, l.at))
		}
	}
	if limit.MaxConcurrent > 0 {
		s.limits = append(s.limits, newDimension(project.Concurrent, "max_concurrent", "calls", float64(limit.MaxConcurrent), float64(d.Concurrent)))
	}
}

// windowDimension returns the dimension of a project's window.
func windowDimension(s *project.Standing, now time.Time) Dimension {
	w := s.Window
	limit, used, reserved, unit := float64(w.Count), float64(w.Count-s.Remaining), float64(max(s.Reserved, 0)), "requests"
	switch {
	case w.Tokens:
		unit = "tokens"
	case w.Dollars:
		unit, limit, used, reserved = "dollars", limit/price.Dollar, used/price.Dollar, reserved/price.Dollar
	}
	d := newDimension(w.Name, settingOf(w.Name), unit, limit, used)
	d.Reserved = min(reserved, used)
	if !w.Total() && w.Period > time.Minute && used > 0 {
		d.ResetsAt = now.Add(s.ResetAfter).Round(time.Second)
	}
	return d
}

// modelLimits are the limits of a quota.
var modelLimits = []struct {
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

// askModel asks what is used of the quota of a model, and what its provider has said.
func (l *lookout) askModel(s *standing) {
	rl := l.admin.gateway.Models()
	s.limits, s.pause, s.provider = nil, nil, nil
	if d := rl.Decide(s.name, 0); d.Code != ratelimit.DecisionStoreLost {
		for _, of := range modelLimits {
			if used, most := of.of(&d.Stats); most > 0 {
				s.limits = append(s.limits, newDimension(of.name, of.setting, of.unit, float64(most), float64(used)))
			}
		}
	}
	if left := rl.Paused(s.name); left > 0 {
		s.pause = &RowPause{Reason: cmp.Or(string(rl.PauseCause(s.name)), "another gateway has heard why"), Until: l.at.Add(left).Round(time.Second), Remaining: left.Seconds()}
	}
	for _, said := range l.admin.gateway.Said(s.name) {
		s.provider = append(s.provider, ProviderLimit{said.Name, said.Limit, said.Remaining, said.Used, said.At.UTC()})
	}
}

// addShares gives each project its shares of the limits of models, and each limit of a model what is
// lent and borrowed of it in all.
func (l *lookout) addShares() {
	for _, m := range l.models.list {
		for _, p := range l.admin.gateway.Models().Shares(m.name) {
			for i := range p.Limits {
				share := &p.Limits[i]
				of := m.limit(share.Name)
				if of == nil {
					continue
				}
				of.Lent += float64(share.Lent)
				of.Borrowed += float64(share.Borrowed)
				if l.projects.saw(p.Project, l.looks) {
					d := newDimension(share.Name+"_share", "", of.Unit, float64(share.Share), float64(share.Used))
					d.Model, d.Lent, d.Borrowed = m.name, float64(share.Lent), float64(share.Borrowed)
					s := l.projects.byName[p.Project]
					s.shares = append(s.shares, d)
				}
			}
		}
	}
}

// limit returns the dimension of a limit, or nil if there is none.
func (s *standing) limit(name string) *Dimension {
	for i := range s.limits {
		if s.limits[i].Name == name {
			return &s.limits[i]
		}
	}
	return nil
}
