package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// top is the state of the screen.
type top struct {
	ctx    context.Context
	client *admin.Client
	out    *console.Writer

	overview      admin.Overview
	found         []admin.Row // the projects by a filter or in another order, as the gateway has found them
	width, height int

	order      string // one of rowOrders
	filter     string
	typing     bool          // the keys go to the filter
	inProjects bool          // the chosen row is a project
	chosen     string        // the name of the chosen row; empty: the first
	details    bool          // all limits of the chosen row are shown
	project    admin.Project // the last one whose details were shown
	asking     *pausing
	note       string // the last message to the operator, such as the result of a pause
	lost       string // why the gateway does not answer
}

// pausing is a question whether to pause or resume a row.
type pausing struct {
	title string // such as project acme
	edit  admin.Edit
	pause bool
}

// pausedMsg is the end of a pause that was asked for, foundMsg the projects that were, and projectMsg the
// project whose details are shown.
type (
	projectMsg admin.Project

	pausedMsg struct {
		what string
		err  error
	}
	foundMsg struct {
		rows          []admin.Row
		filter, order string
	}
)

// Init implements [tea.Model].
func (t *top) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (t *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = msg.Width, msg.Height
	case snapshotMsg:
		t.overview, t.lost = admin.Overview(msg), ""
		return t, tea.Batch(t.find(), t.askProject())
	case deltaMsg:
		t.apply(admin.OverviewDelta(msg))
		return t, tea.Batch(t.find(), t.askProject())
	case foundMsg:
		if msg.filter == t.filter && msg.order == t.order {
			t.found = msg.rows
		}
	case projectMsg:
		t.project = admin.Project(msg)
	case lostMsg:
		t.lost = message.Plain(msg.err)
	case pausedMsg:
		t.note = msg.what
		if msg.err != nil {
			t.note = message.Plain(msg.err)
		}
	case tea.KeyPressMsg:
		return t, tea.Batch(t.press(msg), t.askProject())
	}
	return t, nil
}

// apply makes the changes of a delta.
func (t *top) apply(d admin.OverviewDelta) {
	o := &t.overview
	o.Gateways, o.Silent = d.Gateways, d.Silent
	o.Time, o.Mode, o.StoreLost, o.Totals, o.ModelCount, o.ProjectCount = d.Time, d.Mode, d.StoreLost, d.Totals, d.ModelCount, d.ProjectCount
	o.Models, o.Projects, t.lost = changedRows(o.Models, d.Models, d.GoneModels), changedRows(o.Projects, d.Projects, d.GoneProjects), ""
}

// changedRows returns rows with some changed or new, and without some others.
func changedRows(rows, changed []admin.Row, gone []string) []admin.Row {
	kept := slices.Clone(changed)
	for _, r := range rows {
		same := func(other admin.Row) bool { return other.Name == r.Name }
		if !slices.ContainsFunc(changed, same) && !slices.Contains(gone, r.Name) {
			kept = append(kept, r)
		}
	}
	return kept
}

// asks reports whether the projects on the screen are not those of the overview.
func (t *top) asks() bool { return t.filter != "" || t.order != rowOrders[0] }

// find asks the gateway for the projects by the filter and in the order.
func (t *top) find() tea.Cmd {
	if !t.asks() {
		t.found = nil
		return nil
	}
	filter, order := t.filter, t.order
	return func() tea.Msg {
		rows, err := t.client.OverviewProjects(t.ctx, filter, order, 0, topProjects)
		if err != nil {
			return nil // the stream says that the gateway has gone
		}
		return foundMsg{rows.Projects, filter, order}
	}
}

// askProject asks the gateway for the project whose details are shown.
func (t *top) askProject() tea.Cmd {
	rows := t.rows(true)
	if !t.details || !t.inProjects || len(rows) == 0 {
		return nil
	}
	id := rows[t.chosenIn(rows)].Name
	return func() tea.Msg {
		p, err := t.client.Project(t.ctx, id)
		if err != nil {
			return nil // the stream says that the gateway has gone
		}
		return projectMsg(p)
	}
}

// byOrder compares rows in each of rowOrders. Those that are equal are in the order of harm, as in the gateway.
var byOrder = map[string]func(a, b admin.Row) int{
	"harm":     byHarm,
	"pressure": byPressure,
	"name":     func(a, b admin.Row) int { return cmp.Compare(a.Name, b.Name) },
	"waiting":  func(a, b admin.Row) int { return cmp.Compare(b.Waiting, a.Waiting) },
	"denied":   func(a, b admin.Row) int { return cmp.Compare(b.Minute.Denied, a.Minute.Denied) },
	"calls":    func(a, b admin.Row) int { return cmp.Compare(b.Minute.Passed, a.Minute.Passed) },
}

// byHarm puts those rows first to whose calls the worst happens, as the gateway does.
func byHarm(a, b admin.Row) int {
	rank := func(r admin.Row) int { return slices.Index([]string{"near", "waiting", "denied", "blocked"}, r.Harm) }
	stopped := func(r admin.Row) int64 { return r.Minute.Denied + r.Minute.Refused }
	return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(stopped(b), stopped(a)), cmp.Compare(b.Waiting, a.Waiting), byPressure(a, b))
}

// byPressure puts those rows first that are closest to their limits, and of equals those with more calls, as the
// gateway does.
func byPressure(a, b admin.Row) int {
	calls := func(r admin.Row) (n int64) {
		for _, each := range slices.Concat(r.Spark, r.SparkDenied) {
			n += each
		}
		return n
	}
	return cmp.Or(cmp.Compare(b.Pressure, a.Pressure), cmp.Compare(calls(b), calls(a)), cmp.Compare(a.Name, b.Name))
}

// rows returns the models or the projects that are shown, in their order.
func (t *top) rows(projects bool) []admin.Row {
	all := t.overview.Models
	if projects {
		all = t.overview.Projects
		if t.asks() && t.found != nil {
			all = t.found
		}
	}
	kept := []admin.Row{}
	for _, r := range all {
		if strings.Contains(strings.ToLower(r.Name), strings.ToLower(t.filter)) {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(a, b admin.Row) int {
		return cmp.Or(byOrder[t.order](a, b), byHarm(a, b))
	})
	return kept
}

// chosenIn returns the place of the chosen row; the first if it is not there any more.
func (t *top) chosenIn(rows []admin.Row) int {
	return max(slices.IndexFunc(rows, func(r admin.Row) bool { return r.Name == t.chosen }), 0)
}
