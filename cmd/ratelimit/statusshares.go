package main

import (
	"fmt"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// innerShareLines returns a table of what those below projects use of their shares of the projects'
// limits, or nothing if nobody has to share.
func innerShareLines(projects []admin.Project, width int) []string {
	t := console.NewTable(console.Text("share of").Shortened(12), console.Text("limit"), console.Text("project").ShortenedAtStart(12),
		console.Number("weight"), console.Number("waiting"), console.Number("used"), console.Number("share"), console.Text("").Below())
	for _, p := range projects {
		for _, w := range p.Windows {
			addShareRows(t, p, w)
		}
	}
	if t.Len() == 0 {
		return nil
	}
	return t.Lines(width)
}

// addShareRows adds a row for each of those that share a window of a project.
func addShareRows(t *console.Table, p admin.Project, w admin.Window) {
	shared := false
	for _, inside := range p.Shares {
		for _, l := range inside.Limits {
			if l.Name != w.Name {
				continue
			}
			shared = true
			var notes []string
			if inside.Own {
				notes = append(notes, "its own calls")
			}
			if inside.Priority != 0 {
				notes = append(notes, fmt.Sprintf("priority %d", inside.Priority))
			}
			if l.Lent > 0 {
				notes = append(notes, "lends "+amountOf(w.Unit, int64(l.Lent)))
			}
			if l.Borrowed > 0 {
				notes = append(notes, "borrows "+amountOf(w.Unit, int64(l.Borrowed)))
			}
			t.AddStyled(styleOf(0, inside.Waiting > 0), p.ID, admin.LimitInWords(w.Name), inside.Project, strconv.Itoa(inside.Weight), waiting(inside.Waiting),
				amountOf(w.Unit, int64(l.Used)), amountOf(w.Unit, int64(l.Share)), strings.Join(notes, ", "))
		}
	}
	if shared && p.More {
		t.Add(p.ID, admin.LimitInWords(w.Name), "and more", "-", "-", "-", "-", "")
	}
}
