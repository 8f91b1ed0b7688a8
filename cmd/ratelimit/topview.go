package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// View implements [tea.Model].
func (t *top) View() tea.View {
	v := tea.NewView(t.out.Text(t.lines()))
	v.AltScreen = true
	return v
}

// lines returns the screen: as many lines as the terminal has rows.
func (t *top) lines() []string {
	if t.width == 0 || t.height == 0 {
		return nil
	}
	lines := []string{console.Cut(console.Printable(aboutOverview(&t.overview)), t.width), t.state()}
	room := max(t.height-len(lines)-1, 0)
	body := t.sections(room)
	if t.details && len(t.rows(t.inProjects)) > 0 {
		body = t.detailLines()
	}
	for len(body) < room {
		body = append(body, "")
	}
	return append(append(lines, body[:room]...), t.footer())
}

// aboutOverview returns the gateway in one line.
func aboutOverview(o *admin.Overview) string {
	text := fmt.Sprintf("gateway %s, up %v: in the last minute %s passed, %s of them failed, %s denied, %s refused; %d wait", o.Version, o.Time.Sub(o.Started).Truncate(time.Second),
		numeral.Grouped(o.Totals.Passed), numeral.Grouped(o.Totals.Failed), numeral.Grouped(o.Totals.Denied), numeral.Grouped(o.Totals.Refused), o.Totals.Waiting)
	if len(o.Gateways) > 1 {
		text = fmt.Sprintf("%d gateways; this is ", len(o.Gateways)) + text
	}
	if o.Mode == "shadow" {
		text += "; shadow: nothing is denied"
	}
	return text
}

// noAnswer says that the figures of these gateways are missing.
func noAnswer(silent []string) string {
	return "NO ANSWER from " + strings.Join(silent, ", ") + ": the figures are without theirs"
}

// state returns the second line: what is wrong, or else the order and the filter.
func (t *top) state() string {
	text := "sorted by " + t.order
	if t.filter != "" || t.typing {
		text += ", filter: " + console.Printable(t.filter)
	}
	if t.typing {
		text += "▏"
	}
	switch {
	case t.lost != "":
		return console.Bad(console.Cut(console.Printable("THE GATEWAY DOES NOT ANSWER: "+t.lost+"; trying again"), t.width))
	case t.overview.StoreLost != "":
		return console.Bad(console.Cut(console.Printable("REDIS IS LOST: "+t.overview.StoreLost), t.width))
	case len(t.overview.Silent) > 0:
		return console.Bad(console.Cut(console.Printable(noAnswer(t.overview.Silent)), t.width))
	}
	return console.Faint(console.Cut(text, t.width))
}

// footer returns the last line: a question, what has happened, or the keys.
func (t *top) footer() string {
	switch {
	case t.asking != nil:
		return console.Near(console.Cut(console.Printable(t.asking.question()), t.width))
	case t.note != "":
		return console.Cut(console.Printable(t.note), t.width)
	}
	return console.Faint(console.Cut("↑↓ choose  tab models/projects  enter limits  s sort  / filter  p pause  q quit", t.width))
}

// sections returns the models, and below them the projects. Each has its part of the rows, and a list
// that is longer shows the rows around the chosen one.
func (t *top) sections(room int) []string {
	models, projects := t.rows(false), t.rows(true)
	room = max(room-3, 2) // two heads, and a line between
	forModels := min(len(models), max(room/2, room-len(projects)))
	forProjects := min(len(projects), room-forModels)
	lines := t.section("model", models, t.overview.ModelCount, forModels, !t.inProjects)
	return append(append(lines, ""), t.section("project", projects, t.overview.ProjectCount, forProjects, t.inProjects)...)
}

// section returns a head and some of the rows.
func (t *top) section(of string, rows []admin.Row, total, room int, isChosen bool) []string {
	if len(rows) == 0 {
		return []string{console.Head("no " + of + "s")}
	}
	chosen, from := -1, 0
	if isChosen {
		chosen = t.chosenIn(rows)
		from = min(max(chosen-room/2, 0), len(rows)-room)
	}
	shown := rows[from : from+room]
	table := topTable(fmt.Sprintf("%s (%s)", of, numeral.Grouped(int64(max(total, len(rows))))))
	for i, r := range shown {
		style := styleOf(r.Pressure, r.Harm == "blocked" || r.Harm == "denied" || r.Waiting > 0 || r.Paused || r.Pause != nil)
		if from+i == chosen {
			style = chosenStyle(style)
		}
		table.AddStyled(style, topRow(r)...)
	}
	return table.Lines(t.width)
}

// chosenStyle returns a style for the chosen row.
func chosenStyle(style func(string) string) func(string) string {
	if style == nil {
		return console.Chosen
	}
	return func(text string) string { return style(console.Chosen(text)) }
}

func topTable(title string) *console.Table {
	return console.NewTable(console.Text(title).ShortenedAtStart(14), console.Text("used").Kept(), console.Number("").Kept(), console.Text("closest limit").Kept().Shortened(24),
		console.Number("waits").Kept(), console.Number("calls").Kept(), console.Number("denied").Kept(),
		console.Number("longest").Kept().Leaves(4), console.Number("tokens").Kept().Leaves(3), console.Number("dollars").Kept().Leaves(2), console.Text("15 minutes").Kept().Leaves(5), console.Text("").Leaves(1))
}

// barColumns is how long the bar of a row is.
const barColumns = 10

func topRow(r admin.Row) []string {
	limit, used := closestOf(r)
	switch {
	case r.Paused:
		limit = "PAUSED"
	case r.Pause != nil:
		limit = fmt.Sprintf("PROVIDER %.0f s", r.Pause.Remaining)
	}
	longest := "-"
	if r.LongestWait > 0 {
		longest = fmt.Sprintf("%.1f s", r.LongestWait)
	}
	return []string{
		r.Name, bar(r.Pressure, barColumns), used, limit, count(int64(r.Waiting)), count(r.Minute.Passed), count(r.Minute.Denied),
		longest, count(r.Minute.Tokens), dollars(&admin.UsageSum{Dollars: r.Minute.Dollars}), spark(r.Spark), strings.Join(rowNotes(r), ", "),
	}
}

// bar returns a bar of which a part is filled.
func bar(part float64, columns int) string {
	full := min(int(part*float64(columns)+0.5), columns)
	return strings.Repeat("█", full) + strings.Repeat("░", columns-full)
}

// spark returns numbers as a line of small bars.
func spark(numbers []int64) string {
	if len(numbers) == 0 {
		return "-"
	}
	levels, most := []rune("▁▂▃▄▅▆▇█"), max(slices.Max(numbers), 1)
	var b strings.Builder
	for _, n := range numbers {
		b.WriteRune(levels[n*int64(len(levels)-1)/most])
	}
	return b.String()
}

// detailLines returns all limits of the chosen row, and what else is known of it.
func (t *top) detailLines() []string {
	rows := t.rows(t.inProjects)
	r := rows[t.chosenIn(rows)]
	lines := []string{console.Head(console.Cut(console.Printable(r.Name), t.width))}
	table := console.NewTable(console.Text("limit"), console.Text("used"), console.Number(""), console.Number("of"), console.Text(""), console.Text("share of").Shortened(12), console.Text("").Below())
	for _, d := range r.Dimensions {
		part := d.Used / max(d.Limit, 1e-9)
		table.AddStyled(styleOf(part, false), admin.LimitInWords(d.Name), bar(part, 2*barColumns), inUnit(d.Unit, d.Used), inUnit(d.Unit, d.Limit), d.Unit, d.Model, lending(d))
	}
	if table.Len() > 0 {
		lines = append(lines, table.Lines(t.width)...)
	}
	if t.inProjects && t.project.ID == r.Name {
		if shares := innerShareLines([]admin.Project{t.project}, t.width); len(shares) > 0 {
			lines = append(append(lines, ""), shares...)
		}
	}
	if notes := rowNotes(r); len(notes) > 0 {
		lines = append(append(lines, ""), console.Sentences(t.width, strings.Join(notes, ", "))...)
	}
	if r.Actual > 0 {
		lines = append(append(lines, ""), console.Sentences(t.width, fmt.Sprintf("In 15 minutes %s tokens were estimated, and %s used.", numeral.Grouped(r.Estimated), numeral.Grouped(r.Actual)))...)
	}
	for _, p := range r.Provider {
		lines = append(lines, console.Sentences(t.width, fmt.Sprintf("The provider reported at %s that %s of %s (%s) were left; the gateway had counted %s.",
			clock(p.At), numeral.Grouped(p.Remaining), numeral.Grouped(p.Limit), admin.LimitInWords(p.Dimension), numeral.Grouped(int64(p.UsedHere))))...)
	}
	return lines
}

// lending returns what is lent and borrowed of a limit.
func lending(d admin.Dimension) string {
	var notes []string
	if d.Lent > 0 {
		notes = append(notes, "lent "+inUnit(d.Unit, d.Lent))
	}
	if d.Borrowed > 0 {
		notes = append(notes, "borrowed "+inUnit(d.Unit, d.Borrowed))
	}
	return strings.Join(notes, ", ")
}
