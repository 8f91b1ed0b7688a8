package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// writeReport prints one table: floors, ours and peers, in this order.
func writeReport(w io.Writer, r report) {
	fmt.Fprintf(w, "\n%s\n  %s\n\n", strings.ToUpper(r.name), r.title)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "  \t\t%s\n", strings.Join(r.columns, "\t"))
	for _, row := range byKind(r.rows) {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", row.kind, row.name, strings.Join(row.cells, "\t"))
	}
	t.Flush()
}

// byKind keeps the order within a kind.
func byKind(rows []row) []row {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b row) int { return int(a.kind - b.kind) })
	return out
}

// writeNotes prints what makes the figures doubtful.
func writeNotes(w io.Writer, notes []string) {
	if len(notes) == 0 {
		return
	}
	fmt.Fprint(w, "\nNOTES\n\n")
	for _, n := range notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
}

// writeChecks prints what is required beside what was measured.
func writeChecks(w io.Writer, checks []check) {
	if len(checks) == 0 {
		return
	}
	fmt.Fprint(w, "\nREQUIRED FIGURES\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	missed := 0
	fmt.Fprintln(t, "  \tfigure\trequired\tmeasured")
	for _, c := range checks {
		verdict := "pass"
		if !c.pass {
			verdict = "MISS"
			missed++
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", verdict, c.figure, c.required, c.measured)
	}
	t.Flush()
	fmt.Fprintf(w, "\n%d of %d required figures reached.\n", len(checks)-missed, len(checks))
}
