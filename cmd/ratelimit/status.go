package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

func newStatus() *cobra.Command {
	a := &adminFlags{}
	var asJSON, watch bool
	c := &cobra.Command{
		Use:     "status [PROJECT]",
		Short:   "Show what models and projects use of their limits",
		Long:    "Show what models and projects use of their limits, at a running gateway;\nor what a project and those inside of it use.",
		Example: "  ratelimit status --watch\n  ratelimit status acme\n  ratelimit status --json | jq '.models[] | select(.paused_seconds > 0)'\n  RATELIMIT_ADMIN_TOKEN=… ratelimit status --admin https://gateway:8081",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			show := func(to func([]string) error) error { return showStatus(c, client, to, asJSON) }
			if len(args) > 0 {
				show = func(to func([]string) error) error { return showSubtree(c, client, args[0], to, asJSON) }
			}
			if watch {
				return watchStatus(c, show)
			}
			return show(newScreen(c.OutOrStdout()).leave)
		}),
	}
	a.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	return c
}

// watchStatus shows the status every second until the user presses Ctrl-C, which is no error.
func watchStatus(c *cobra.Command, show func(to func([]string) error) error) error {
	s := newScreen(c.OutOrStdout())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := show(s.show)
		if c.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func showStatus(c *cobra.Command, client *admin.Client, show func([]string) error, asJSON bool) error {
	state, err := client.State(c.Context())
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), state)
	}
	return show(statusLines(state))
}

// statusLines returns a state as lines for people.
func statusLines(s admin.State) []string {
	lines := []string{fmt.Sprintf("gateway %s at %s, up %v, state in %s, keys %s, %d requests active",
		s.Version, s.Listen, (time.Duration(s.Uptime) * time.Second), s.Store, s.Keys, s.Active)}
	if s.Waiting > 0 {
		lines[0] += fmt.Sprintf(", %d of them wait", s.Waiting)
	}
	if !s.Ready {
		lines = append(lines, "NOT READY: "+s.Reason)
	}
	if s.StoreLost != "" {
		lines = append(lines, fmt.Sprintf("REDIS IS LOST: %s (on_store_loss: %s); %s", whileLost[s.OnStoreLoss], s.OnStoreLoss, s.StoreLost))
	}
	lines = append(append(lines, ""), modelLines(s.Models)...)
	if shares := shareLines(s.Models); len(shares) > 0 {
		lines = append(append(lines, ""), shares...)
	}
	if len(s.Projects) > 0 {
		lines = append(append(lines, ""), projectLines(s.Projects)...)
	}
	if s.More {
		lines = append(lines, "and more: --json has no more either, ask the admin API for pages of /v1/projects")
	}
	return lines
}

// whileLost is what happens to calls while Redis is lost.
var whileLost = map[string]string{
	"deny":  "calls that have a limit get 503",
	"allow": "everything passes, without limits",
	"share": "each gateway lets its part of every limit pass",
}

// modelLines returns a table of the models that are used, paused or waited for, and a line
// with the number of the others.
func modelLines(models []admin.Model) []string {
	t := table{head: []string{"model", ">requests/min", ">tokens/min", ">input/min", ">output/min", ">requests/day", ">tokens/day", ">at a time", ""}}
	idle := 0
	for _, m := range models {
		u, q := m.Usage, m.Quota
		switch {
		case u == nil:
			t.add(m.Name, "?", "?", "?", "?", "?", "?", "?", "the store does not answer")
			continue
		case *u == (admin.Usage{}) && m.Paused == 0 && m.Waiting == 0:
			idle++
			continue
		}
		var notes []string
		if m.Origin == gateway.Guessed || m.Origin == gateway.Learned {
			notes = append(notes, string(m.Origin))
		}
		if m.Waiting > 0 {
			notes = append(notes, fmt.Sprintf("%d wait", m.Waiting))
		}
		if m.Paused > 0 {
			notes = append(notes, fmt.Sprintf("paused by the provider for %.0f s", m.Paused))
		}
		t.add(m.Name, used(u.RPM, q.MaxRPM), used(u.TPM, q.MaxTPM), used(u.InputTPM, q.MaxInputTPM), used(u.OutputTPM, q.MaxOutputTPM),
			used(u.RPD, q.MaxRPD), used(u.TPD, q.MaxTPD), used(u.Concurrent, q.MaxConcurrent), strings.Join(notes, ", "))
	}
	var lines []string
	if len(t.rows) > 0 {
		lines = t.withoutEmpty("-").lines()
	}
	if idle > 0 {
		lines = append(lines, fmt.Sprintf("(models of which nothing is used: %d)", idle))
	}
	return lines
}

// shareUnits are the limits that projects share, as the tables name them.
var shareUnits = []struct{ limit, unit string }{
	{"rpm", "requests/min"}, {"tpm", "tokens/min"}, {"input_tpm", "input/min"}, {"output_tpm", "output/min"}, {"rpd", "requests/day"}, {"tpd", "tokens/day"},
}

// shareLines returns a table of what projects use of their shares, at the models that several
// projects use, or nothing if there is no such model.
func shareLines(models []admin.Model) []string {
	t := table{head: []string{"share of", "project"}}
	for _, u := range shareUnits {
		t.head = append(t.head, ">"+u.unit)
	}
	t.head = append(t.head, "")
	for _, m := range models {
		if len(m.Shares) < 2 {
			continue
		}
		for _, p := range m.Shares {
			t.add(shareRow(m.Name, p)...)
		}
		if m.More {
			t.add(m.Name, "and more", "-", "-", "-", "-", "-", "-", "")
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t.withoutEmpty("-").lines()
}

func shareRow(model string, p ratelimit.ProjectShare) []string {
	row := []string{model, cmp.Or(p.Project, "(none)")}
	var notes []string
	if p.Waiting > 0 {
		notes = append(notes, fmt.Sprintf("%d wait", p.Waiting))
	}
	for _, u := range shareUnits {
		i := slices.IndexFunc(p.Limits, func(l ratelimit.LimitShare) bool { return l.Name == u.limit })
		if i < 0 {
			row = append(row, "-")
			continue
		}
		l := p.Limits[i]
		row = append(row, numeral.Grouped(int64(l.Used))+" / "+numeral.Grouped(int64(l.Share)))
		if l.Lent > 0 {
			notes = append(notes, fmt.Sprintf("lends %s %s", numeral.Grouped(int64(l.Lent)), u.unit))
		}
		if l.Borrowed > 0 {
			notes = append(notes, fmt.Sprintf("borrows %s %s", numeral.Grouped(int64(l.Borrowed)), u.unit))
		}
	}
	return append(row, strings.Join(notes, ", "))
}

// used returns how much of a limit is used, such as 3 / 500. Without a limit, the usage may
// be unknown: then it is a dash.
func used(n, most int) string {
	switch {
	case most > 0:
		return numeral.Grouped(int64(n)) + " / " + numeral.Grouped(int64(most))
	case n > 0:
		return numeral.Grouped(int64(n))
	default:
		return "-"
	}
}

func projectLines(projects []admin.Project) []string {
	t := table{head: []string{"project", ">weight", "used"}}
	for _, p := range projects {
		t.add(p.ID, fmt.Sprint(max(p.Limit.Weight, 1)), usageOfProject(p))
	}
	return t.lines()
}

// usageOfProject returns what a project has used of its limits.
func usageOfProject(p admin.Project) string {
	if p.Windows == nil {
		return "?"
	}
	var parts []string
	for _, w := range p.Windows {
		parts = append(parts, fmt.Sprintf("%s %s / %s", w.Name, amountIn(w, w.Limit-w.Remaining), amountIn(w, w.Limit)))
	}
	if most := p.Limit.MaxConcurrent; most > 0 {
		parts = append(parts, fmt.Sprintf("%s at a time", numeral.Grouped(int64(most))))
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, ", ")
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
