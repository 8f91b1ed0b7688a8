package main

import "fmt"

// row is one contestant's line in a report.
type row struct {
	name  string
	kind  kind
	value float64  // what is compared and plotted
	cells []string // what is printed, one for each column of the report
}

// report is one table, and one panel of a plot.
type report struct {
	name    string
	title   string
	columns []string
	rows    []row
}

// newCostReport compares costs in unit; the last column relates them to the cheapest of ours.
func newCostReport(name, title, unit string, rows []row) report {
	base := cheapest(rows, ours)
	for i, r := range rows {
		rows[i].cells = append([]string{fmt.Sprintf("%.1f", r.value), fmt.Sprintf("%.2fx", r.value/base.value)}, r.cells...)
	}
	return report{name: name, title: title, columns: []string{unit, "of ours"}, rows: rows}
}

// cheapest is the row of kind k with the lowest value.
func cheapest(rows []row, k kind) row {
	var best row
	for _, r := range rows {
		if r.kind == k && (best.name == "" || r.value < best.value) {
			best = r
		}
	}
	return best
}

// bestPeer is the cheapest peer, named as such.
func bestPeer(rows []row) row {
	best := cheapest(rows, peer)
	best.name = "the best peer, " + best.name
	return best
}

func named(rows []row, name string) row {
	for _, r := range rows {
		if r.name == name {
			return r
		}
	}
	panic("no row named " + name)
}

// check is one required figure beside the one that was measured.
type check struct {
	figure             string
	required, measured string
	pass               bool
}

// faster requires a to cost at most 1/times of what b costs.
func faster(where string, a, b row, times float64) check {
	got := b.value / a.value
	return check{
		figure:   fmt.Sprintf("%s: %s against %s", where, a.name, b.name),
		required: fmt.Sprintf("at least %.1fx faster", times),
		measured: fmt.Sprintf("%.2fx", got),
		pass:     got >= times,
	}
}

// costsAtMost requires a to cost at most times what b costs.
func costsAtMost(where string, a, b row, times float64) check {
	got := a.value / b.value
	return check{
		figure:   fmt.Sprintf("%s: %s against %s", where, a.name, b.name),
		required: fmt.Sprintf("at most %.1fx its cost", times),
		measured: fmt.Sprintf("%.2fx", got),
		pass:     got <= times,
	}
}
