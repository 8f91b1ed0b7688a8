package admin

import (
	"cmp"
	"context"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// newDimension returns a dimension of which so much is used.
func newDimension(k kind.Kind, limit, used float64) Dimension {
	return Dimension{Name: k.Name(), Setting: settingOf(k.Name()), Unit: k.Unit().Name(), Limit: limit, Used: used, Remaining: max(limit-used, 0)}
}

// askProject asks what is used of the limits of a project.
func (l *lookout) askProject(ctx context.Context, s *standing) {
	limiter := l.admin.gateway.Projects()
	limit := limiter.Limit(s.name)
	s.weight, s.limits = limit.Weight, nil
	d, err := limiter.Peek(ctx, s.name)
	if err != nil || d.Local {
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
		s.limits = append(s.limits, newDimension(kind.ProjectConcurrent, float64(limit.MaxConcurrent), float64(d.Concurrent)))
	}
}

// windowDimension returns the dimension of a project's window.
func windowDimension(s *project.Standing, now time.Time) Dimension {
	w := s.Window
	k, _ := kind.Named(w.Name)
	of := func(n int64) float64 { return float64(n) / float64(k.Unit().Parts()) }
	used := of(w.Count - s.Remaining)
	d := newDimension(k, of(w.Count), used)
	d.Reserved = min(of(max(s.Reserved, 0)), used)
	if !w.Total() && w.Period > time.Minute && used > 0 {
		d.ResetsAt = now.Add(s.ResetAfter).Round(time.Second)
	}
	return d
}

// askModel asks what is used of the quota of a model, and what its provider has reported.
func (l *lookout) askModel(s *standing) {
	rl := l.admin.gateway.Models()
	s.limits, s.pause, s.provider = nil, nil, nil
	if d := rl.Decide(s.name, 0); d.Code != ratelimit.DecisionStoreLost && !d.Stats.Local {
		for of := range d.Stats.Limits() {
			if k, _ := kind.Named(of.Name); of.Max > 0 {
				s.limits = append(s.limits, newDimension(k, float64(of.Max), float64(of.Used)))
			}
		}
	}
	if left := rl.Paused(s.name); left > 0 {
		s.pause = &RowPause{Reason: cmp.Or(string(rl.PauseCause(s.name)), "another gateway knows the reason"), Until: l.at.Add(left).Round(time.Second), Remaining: left.Seconds()}
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
					d := Dimension{Name: share.Name + kind.ShareEnd, Unit: of.Unit, Limit: float64(share.Share), Used: float64(share.Used), Model: m.name}
					d.Remaining, d.Lent, d.Borrowed = max(d.Limit-d.Used, 0), float64(share.Lent), float64(share.Borrowed)
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
