package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// modelLimit is how much of one limit of a model is used.
type modelLimit struct{ used, most int }

func (l modelLimit) pressure() float64 {
	if l.most == 0 {
		return 0
	}
	return float64(l.used) / float64(l.most)
}

// modelKinds are the kinds of limits of models, in the order of limitsOf.
var modelKinds = kind.Of(kind.Model)

// quotaFields finds the maxima of a quota.
var quotaFields = kind.NewFields[ratelimit.ModelQuota](kind.Model)

func limitsOf(u *admin.Usage, q *admin.Quota) (list []modelLimit) {
	for _, k := range modelKinds {
		list = append(list, modelLimit{u.Used[k.Name()], int(quotaFields.Get(&q.ModelQuota, k))})
	}
	return list
}

// isIdle reports whether nothing is used of a model.
func isIdle(u *admin.Usage) bool {
	for _, n := range u.Used {
		if n != 0 {
			return false
		}
	}
	return u.DayStart.IsZero()
}

// modelPressure returns which part of its closest limit is used of a model.
func modelPressure(m admin.Model) (most float64) {
	if m.Usage == nil {
		return 0
	}
	for _, l := range limitsOf(m.Usage, &m.Quota) {
		most = max(most, l.pressure())
	}
	return most
}

// modelLines returns a table of the models that are used, paused or waited for, those that are closest
// to a limit first, and a line with the number of the others.
func modelLines(models []admin.Model, width int) []string {
	busy, idle := []admin.Model{}, 0
	for _, m := range models {
		if m.Usage != nil && isIdle(m.Usage) && m.Paused == 0 && m.Waiting == 0 && !m.Stopped {
			idle++
		} else {
			busy = append(busy, m)
		}
	}
	slices.SortStableFunc(busy, func(a, b admin.Model) int {
		return cmp.Or(cmp.Compare(min(b.Waiting, 1), min(a.Waiting, 1)), cmp.Compare(modelPressure(b), modelPressure(a)), cmp.Compare(a.Name, b.Name))
	})
	t := console.NewTable(modelColumns(busy)...)
	for _, m := range busy {
		t.AddStyled(styleOf(modelPressure(m), m.Waiting > 0 || m.Stopped || m.Paused > 0), modelRow(m)...)
	}
	var lines []string
	if t.Len() > 0 {
		lines = t.Lines(width)
	}
	switch {
	case idle == 1:
		lines = append(lines, console.Faint("(1 unused model hidden)"))
	case idle > 1:
		lines = append(lines, console.Faint(fmt.Sprintf("(%d unused models hidden)", idle)))
	}
	return lines
}

// modelColumns returns the columns of a table of models. Of the limits, those leave first of which the
// least is used.
func modelColumns(models []admin.Model) []console.Column {
	pressures := make([]float64, len(modelKinds))
	for _, m := range models {
		if m.Usage != nil {
			for i, l := range limitsOf(m.Usage, &m.Quota) {
				pressures[i] = max(pressures[i], l.pressure())
			}
		}
	}
	order := make([]int, len(modelKinds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pressures[a], pressures[b]) })
	columns := []console.Column{console.Text("model").Shortened(20), console.Number("waiting")}
	for i, k := range modelKinds {
		columns = append(columns, console.Number(k.Name()).Leaves(slices.Index(order, i)+1))
	}
	return append(columns, console.Text("").Below())
}

func modelRow(m admin.Model) []string {
	row := []string{m.Name, waiting(m.Waiting)}
	if m.Usage == nil {
		for range modelKinds {
			row = append(row, "-")
		}
		return append(row, "the store does not answer")
	}
	for _, l := range limitsOf(m.Usage, &m.Quota) {
		row = append(row, used(l.used, l.most))
	}
	notes := pausesOf(m)
	if m.Origin == gateway.Guessed || m.Origin == gateway.Learned {
		notes = append(notes, string(m.Origin))
	}
	return append(row, strings.Join(notes, ", "))
}

// pausesOf returns who has paused a model, and whether it is in shadow.
func pausesOf(m admin.Model) (notes []string) {
	notes = shadowNote(m.Mode)
	if m.Stopped {
		notes = append(notes, "paused by an operator")
	}
	if m.Paused > 0 {
		notes = append(notes, fmt.Sprintf("paused by the provider for %.0f s", m.Paused))
	}
	return notes
}

// sharedKinds are the kinds of limits of models that projects share.
var sharedKinds = slices.DeleteFunc(kind.Of(kind.Model), func(k kind.Kind) bool { return !k.IsShared() })

// shareLines returns a table of what projects use of their shares, at the models that several
// projects use, or nothing if there is no such model. Of a model with many shares, it has those of the shown projects.
func shareLines(models []admin.Model, shown []admin.Project, width int) []string {
	columns := []console.Column{console.Text("share of").Shortened(12), console.Text("project").ShortenedAtStart(12), console.Number("waiting")}
	for i, k := range sharedKinds {
		columns = append(columns, console.Number(k.Name()).Leaves(len(sharedKinds)-i))
	}
	t := console.NewTable(append(columns, console.Text("").Below())...)
	for _, m := range models {
		if len(m.Shares) < 2 {
			continue
		}
		shares := m.Shares
		if len(shares) > mostProjects {
			shares = slices.DeleteFunc(slices.Clone(shares), func(p event.ProjectShare) bool {
				return !slices.ContainsFunc(shown, func(each admin.Project) bool { return each.ID == p.Project })
			})
		}
		for _, p := range shares {
			t.AddStyled(styleOf(0, p.Waiting > 0), shareRow(m.Name, p)...)
		}
		if m.More || len(shares) < len(m.Shares) {
			t.Add(shareRow(m.Name, event.ProjectShare{Project: "and more"})...)
		}
	}
	if t.Len() == 0 {
		return nil
	}
	return t.Lines(width)
}

func shareRow(model string, p event.ProjectShare) []string {
	row := []string{model, cmp.Or(p.Project, "(none)"), waiting(p.Waiting)}
	var notes []string
	for _, k := range sharedKinds {
		i := slices.IndexFunc(p.Limits, func(l event.LimitShare) bool { return l.Name == k.Name() })
		if i < 0 {
			row = append(row, "-")
			continue
		}
		l := p.Limits[i]
		row = append(row, numeral.Grouped(int64(l.Used))+" / "+numeral.Grouped(int64(l.Share)))
		if l.Lent > 0 {
			notes = append(notes, fmt.Sprintf("lends %s of %s", numeral.Grouped(int64(l.Lent)), k.Name()))
		}
		if l.Borrowed > 0 {
			notes = append(notes, fmt.Sprintf("borrows %s of %s", numeral.Grouped(int64(l.Borrowed)), k.Name()))
		}
	}
	return append(row, strings.Join(notes, ", "))
}
