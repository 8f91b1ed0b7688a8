package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// showSubtree shows what a project and those below it use.
func showSubtree(c *cobra.Command, from statusSource, id string, show func([]string) error, asJSON bool) error {
	projects, err := from.Projects(c.Context(), id)
	if err != nil {
		return err
	}
	if asJSON {
		return console.Of(c.OutOrStdout()).JSON(projects)
	}
	return show(subtreeLines(projects, console.Of(c.OutOrStdout()).Columns()))
}

// subtreeLines returns projects as a tree, with a line for each of their limits.
func subtreeLines(projects []admin.Project, width int) []string {
	byPath := func(a, b admin.Project) int {
		return slices.Compare(strings.Split(a.ID, "/"), strings.Split(b.ID, "/"))
	}
	projects = slices.SortedFunc(slices.Values(projects), byPath)
	t := console.NewTable(console.Text("project").Shortened(20), console.Text("limit"), console.Number("used"), console.Number("of"), console.Number("resets in"), console.Text("").Below())
	for _, p := range projects {
		name, notes := nameInTree(p.ID, projects[0].ID), strings.Join(projectNotes(p), ", ")
		switch {
		case p.Windows == nil:
			t.Add(name, "(no answer)", "", "", "", notes) // of the store
		case len(p.Windows) == 0:
			t.Add(name, "no limits", "", "", "", notes)
		}
		for i, w := range p.Windows {
			if i > 0 {
				name, notes = "", ""
			}
			t.Add(name, admin.LimitInWords(w.Name), amountOf(w.Unit, w.Limit-w.Remaining), amountOf(w.Unit, w.Limit), resetIn(w), notes)
		}
	}
	lines := t.Lines(width)
	if shares := innerShareLines(projects, width); len(shares) > 0 {
		lines = append(append(lines, ""), shares...)
	}
	return lines
}

// nameInTree returns the name of a project in a tree of which root is the top: the last name of its
// path, behind two spaces for each level below the top.
func nameInTree(id, root string) string {
	if id == root {
		return id
	}
	return strings.Repeat("  ", strings.Count(id, "/")-strings.Count(root, "/")) + id[strings.LastIndexByte(id, '/')+1:]
}

// resetIn says in how long nothing is used of a window any more, in its two largest units.
func resetIn(w admin.Window) string {
	const day = 24 * time.Hour
	switch left := time.Duration(w.ResetAfter) * time.Second; {
	case w.Name == "dollars":
		return "never"
	case w.Limit == w.Remaining:
		return "-"
	case left >= day:
		return strings.TrimSuffix(fmt.Sprintf("%dd%v", left/day, (left%day).Truncate(time.Hour)), "0m0s")
	case left >= time.Hour:
		return strings.TrimSuffix(left.Truncate(time.Minute).String(), "0s")
	default:
		return left.String()
	}
}
