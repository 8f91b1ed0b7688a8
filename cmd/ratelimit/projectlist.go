package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

// rowOrders are the orders of lists of projects.
var rowOrders = []string{"harm", "pressure", "name", "waiting", "denied", "calls"}

func newProjectList(a *adminFlags) *cobra.Command {
	var search, order string
	var most int
	c := &cobra.Command{
		Use:   "list",
		Short: "List projects, those that need attention first",
		Long: `List projects, those that need attention first: the limit closest to its end, how much of it is
used, how many calls wait, and what became of the calls of the last minute.`,
		Example: "  ratelimit project list --search acme --sort waiting\n  ratelimit project list -n 0 --json",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			if !slices.Contains(rowOrders, order) {
				return usageError{fmt.Errorf("--sort is %s: it must be one of %s", message.Quote(order), strings.Join(rowOrders, ", "))}
			}
			rows, err := allProjects(c.Context(), client, search, order, most)
			if err != nil {
				return err
			}
			return show(c, rows, func(width int) []string { return rowLines("project", rows.Projects, rows.Total, width) })
		}),
	}
	c.Flags().StringVar(&search, "search", "", "only projects with this `TEXT` in their names")
	c.Flags().StringVar(&order, "sort", "harm", "the `ORDER`: harm, pressure, name, waiting, denied or calls")
	c.Flags().IntVarP(&most, "most", "n", 50, "how many are shown; 0 is all")
	jsonFlag(c)
	return c
}

// allProjects returns the rows of at most most projects, or of all projects if most is 0.
func allProjects(ctx context.Context, client *admin.Client, search, order string, most int) (all admin.ProjectRows, err error) {
	all.Projects = []admin.Row{}
	for {
		n := maxNames
		if most > 0 {
			n = min(n, most-len(all.Projects))
		}
		page, err := client.OverviewProjects(ctx, search, order, len(all.Projects), n)
		if err != nil {
			return all, err
		}
		all.Total, all.Projects = page.Total, append(all.Projects, page.Projects...)
		if len(page.Projects) == 0 || len(all.Projects) >= page.Total || len(all.Projects) == most {
			return all, nil
		}
	}
}

// rowLines returns rows of projects or models as a table.
func rowLines(of string, rows []admin.Row, total, width int) []string {
	if len(rows) == 0 {
		return []string{"no matching " + of + "s"}
	}
	t := console.NewTable(console.Text(of).ShortenedAtStart(16), console.Number("waiting"), console.Text("closest limit"), console.Number("used"),
		console.Number("calls/min"), console.Number("denied/min"), console.Number("tokens/min").Leaves(1), console.Text("").Below())
	for _, r := range rows {
		limit, used := closestOf(r)
		t.AddStyled(styleOf(r.Pressure, r.Waiting > 0 || r.Paused || r.Pause != nil), r.Name, waiting(r.Waiting), limit, used,
			count(r.Minute.Passed), count(r.Minute.Denied), count(r.Minute.Tokens), strings.Join(rowNotes(r), ", "))
	}
	return append(t.Lines(width), leftOut(len(rows), total)...)
}

// closestOf returns the limit of its own that a row is closest to, and how much of it is used. Shares are no limits of
// its own.
func closestOf(r admin.Row) (limit, used string) {
	for _, d := range r.Dimensions {
		if d.Model == "" && (d.Name == r.Closest || r.Closest == "") {
			return fmt.Sprintf("%s %s / %s", admin.LimitInWords(d.Name), inUnit(d.Unit, d.Used), inUnit(d.Unit, d.Limit)), percent(r.Pressure)
		}
	}
	return "-", "-"
}

// inUnit returns an amount of a unit.
func inUnit(unit string, n float64) string {
	if unit == "dollars" {
		return price.Amount(n * float64(price.Dollar)).Floor().String()
	}
	return numeral.Grouped(int64(n))
}

// rowNotes returns what stands out in a row.
func rowNotes(r admin.Row) (notes []string) {
	if r.Paused {
		notes = append(notes, "paused")
	}
	if r.Mode == "shadow" {
		notes = append(notes, "shadow")
	}
	if p := r.Pause; p != nil {
		notes = append(notes, fmt.Sprintf("paused by the provider for %.0f s: %s", p.Remaining, p.Reason))
	}
	if r.LongestWait >= 1 {
		notes = append(notes, fmt.Sprintf("the longest waits %.0f s", r.LongestWait))
	}
	if m := r.Minute; m.Failed > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s calls failed in the last minute", numeral.Grouped(m.Failed), numeral.Grouped(m.Passed)))
	}
	if m := r.Minute; m.Refused > 0 {
		notes = append(notes, fmt.Sprintf("%s refused in the last minute", numeral.Grouped(m.Refused)))
	}
	if len(r.DeniedBy) > 0 {
		notes = append(notes, fmt.Sprintf("%s denied by %s in 15 minutes", numeral.Grouped(r.DeniedBy[0].Count), admin.LimitInWords(r.DeniedBy[0].Limit)))
	}
	return notes
}
