package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table is what is printed of one load.
type table struct {
	title   string
	about   []string
	columns []string
	rows    [][]string
}

// figuresOf has a row for each contestant.
func figuresOf(l *load, got map[string]*service) table {
	calls, batch := l.bounds()
	t := table{
		title: l.name,
		about: []string{
			l.about,
			fmt.Sprintf("%d %s a minute, %d minutes; bound of VTC: %.0f for calls that are charged at admission, %.0f for a batch of one window",
				l.quota, l.unit, l.windows, calls, batch),
		},
		columns: []string{"", "off share", "difference", "Jain", "utilisation"},
	}
	if l.latecomer > 0 {
		t.columns = append(t.columns, "of due, 2nd min")
	}
	shares := len(l.clients) <= 3
	if shares {
		for _, c := range l.clients {
			t.columns = append(t.columns, c.name)
		}
	}
	for _, name := range names() {
		s := got[name]
		cells := []string{name, "–", fmt.Sprintf("%.0f", s.difference()), "–", fmt.Sprintf("%.1f%%", 100*s.utilisation())}
		if points, ok := s.worstShare(0); ok {
			cells[1] = fmt.Sprintf("%.1f", points)
		}
		if mean, ok := s.jain(); ok {
			cells[3] = fmt.Sprintf("%.3f", mean)
		}
		if l.latecomer > 0 {
			cells = append(cells, fmt.Sprintf("%.0f%%", 100*s.late()))
		}
		if shares {
			together := span{l.clients[l.latecomer].from, l.length()}
			for i := range l.clients {
				cells = append(cells, fmt.Sprintf("%.1f%%", 100*s.share(i, together)))
			}
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// windowsOf has a row for each contestant and client: its share of each window.
func windowsOf(l *load, got map[string]*service) table {
	t := table{title: l.name + ", shares of each window in %", columns: []string{"", "client", "weight"}}
	for k := range l.windows {
		t.columns = append(t.columns, fmt.Sprint(k+1))
	}
	for _, name := range names() {
		for i, c := range l.clients {
			cells := []string{name, c.name, fmt.Sprint(c.weight)}
			for k := range l.windows {
				one := span{time.Duration(k) * window, time.Duration(k+1) * window}
				cells = append(cells, fmt.Sprintf("%.0f", 100*got[name].share(i, one)))
			}
			t.rows = append(t.rows, cells)
		}
	}
	return t
}

func (t table) print(w io.Writer, markdown bool) {
	if markdown {
		t.markdown(w)
	} else {
		t.text(w)
	}
}

func (t table) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", strings.ToUpper(t.title))
	for _, line := range t.about {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, cells := range append([][]string{t.columns}, t.rows...) {
		fmt.Fprintf(tab, "  %s\n", strings.Join(cells, "\t"))
	}
	tab.Flush()
}

func (t table) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", t.title)
	for _, line := range t.about {
		fmt.Fprintf(w, "%s.\n", line)
	}
	fmt.Fprintf(w, "\n| %s |\n|---|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---:|", len(t.columns)-1))
	for _, cells := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}
