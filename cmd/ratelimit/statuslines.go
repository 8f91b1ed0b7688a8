package main

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// mostProjects is how many projects a status shows: those that come first in the state.
const mostProjects = 20

// statusLines returns a state as lines for people.
func statusLines(s admin.State, width int) []string {
	about := fmt.Sprintf("gateway %s at %s, up %v, state in %s, keys %s, %d requests active",
		s.Version, s.Listen, (time.Duration(s.Uptime) * time.Second), s.Store, s.Keys, s.Active)
	if s.Waiting > 0 {
		about += fmt.Sprintf(", %d of them wait", s.Waiting)
	}
	if s.Listen == "" {
		about = "what is counted in " + s.Store
	}
	if len(s.Gateways) > 1 {
		about = fmt.Sprintf("%d gateways; this is %s", len(s.Gateways), about)
	}
	lines := console.Sentences(width, about)
	if len(s.Silent) > 0 {
		lines = append(lines, bad(width, noAnswer(s.Silent))...)
	}
	if !s.Ready {
		lines = append(lines, bad(width, "NOT READY: "+s.Reason)...)
	}
	if s.Mode == "shadow" {
		lines = append(lines, bad(width, "SHADOW: nothing is denied")...)
	}
	if s.StoreLost != "" {
		lines = append(lines, bad(width, fmt.Sprintf("REDIS IS LOST: %s (on_store_loss: %s); %s", whileLost[s.OnStoreLoss], s.OnStoreLoss, s.StoreLost))...)
	}
	projects := s.Projects[:min(len(s.Projects), mostProjects)]
	for _, part := range [][]string{modelLines(s.Models, width), shareLines(s.Models, projects, width), projectLines(projects, width), innerShareLines(projects, width)} {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	if s.More || len(s.Projects) > len(projects) {
		lines = append(append(lines, ""), console.Sentences(width, fmt.Sprintf("These are the %d projects that most need attention. `ratelimit project list` lists all, and `ratelimit status PROJECT` shows one.", len(projects)))...)
	}
	return lines
}

// bad returns a sentence in the style of what needs attention.
func bad(width int, text string) []string {
	lines := console.Sentences(width, text)
	for i, line := range lines {
		lines[i] = console.Bad(line)
	}
	return lines
}

// whileLost is what happens to calls while Redis is lost.
var whileLost = map[string]string{
	"deny":  "calls that have a limit get 503",
	"allow": "everything passes, without limits",
	"share": "each gateway lets its part of every limit pass",
}

// near is from which part of a limit on what is used stands out.
const near = 0.8

// styleOf returns the style of a row of which this part of the closest limit is used.
func styleOf(pressure float64, stands bool) func(string) string {
	switch {
	case stands || pressure >= 1:
		return console.Bad
	case pressure >= near:
		return console.Near
	}
	return nil
}

// used returns how much of a limit is used, such as 3 / 500; without a limit, 3 / -. The usage may be
// unknown then: all is a dash.
func used(n, most int) string {
	switch {
	case most > 0:
		return numeral.Grouped(int64(n)) + " / " + numeral.Grouped(int64(most))
	case n > 0:
		return numeral.Grouped(int64(n)) + " / -"
	default:
		return "-"
	}
}

// waiting returns how many calls wait, or a dash for none.
func waiting(n int) string { return count(int64(n)) }

// projectLines returns a table of projects with the limit that each is closest to.
func projectLines(projects []admin.Project, width int) []string {
	if len(projects) == 0 {
		return nil
	}
	t := console.NewTable(console.Text("project").ShortenedAtStart(16), console.Text("closest limit"), console.Number("used"), console.Text("also").Below())
	for _, p := range projects {
		t.AddStyled(styleOf(pressureOf(p), p.Paused || p.Harm == "blocked" || p.Harm == "denied"), projectRow(p)...)
	}
	return t.Lines(width)
}
