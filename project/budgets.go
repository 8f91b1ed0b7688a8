package project

import (
	"context"
	"iter"

	"dappco.re/go/core/go-ratelimit/event"
)

// BudgetUsage returns what is used of the budgets of each of these projects that has one: its limits of an hour or
// longer, and in total. It asks the store once for each such project, until the store does not answer.
func (l *Limiter) BudgetUsage(ctx context.Context, projects []string) iter.Seq[event.ProjectUsage] {
	return func(yield func(event.ProjectUsage) bool) {
		lost := false
		for _, id := range projects {
			u := event.ProjectUsage{Project: id, Limits: l.planOf(id).budgets()}
			if u.Limits == nil || CheckID(id) != nil {
				continue
			}
			if !lost {
				d, err := l.Peek(ctx, id)
				lost = err != nil
				fillUsage(u.Limits, &d, id)
			}
			u.Lost = lost
			if !yield(u) {
				return
			}
		}
	}
}

// budgets returns the budgets of a plan, of which nothing is used.
func (p *plan) budgets() (list []event.LimitUsage) {
	for i := range p.windows {
		if p.limits[i].Budget {
			list = append(list, event.LimitUsage{Name: p.windows[i].Name, Max: int(p.windows[i].Count)})
		}
	}
	return list
}

// fillUsage fills in what is used of each budget of a project, as a decision has it.
func fillUsage(budgets []event.LimitUsage, d *Decision, id string) {
	for _, s := range d.Windows() {
		for i := range budgets {
			if b := &budgets[i]; s.Owner == id && s.Window.Name == b.Name {
				b.Used, b.Reserved = int(s.Used), int(max(s.Reserved, 0))
			}
		}
	}
}
