package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// pressureOf returns which part of its closest limit a project has used.
func pressureOf(p admin.Project) (most float64) {
	for _, w := range p.Windows {
		most = max(most, windowPressure(w))
	}
	return most
}

func windowPressure(w admin.Window) float64 {
	return float64(w.Limit-w.Remaining) / float64(max(w.Limit, 1))
}

// projectRow returns the cells of a project: its closest limit, and below it the others.
func projectRow(p admin.Project) []string {
	weight := "-"
	if p.Limit.Weight > 1 {
		weight = fmt.Sprint(p.Limit.Weight)
	}
	var also []string
	windows := slices.SortedStableFunc(slices.Values(p.Windows), func(a, b admin.Window) int {
		return cmp.Compare(windowPressure(b), windowPressure(a))
	})
	closest, share := "no limits", "-"
	for i, w := range windows {
		text := fmt.Sprintf("%s %s / %s", w.Name, amountIn(w, w.Limit-w.Remaining), amountIn(w, w.Limit))
		if i > 0 {
			also = append(also, text)
			continue
		}
		closest, share = text, percent(windowPressure(w))
	}
	if most := p.Limit.MaxConcurrent; most > 0 {
		text := fmt.Sprintf("%s at a time", numeral.Grouped(int64(most)))
		if len(windows) > 0 {
			also = append(also, text)
		} else {
			closest = text
		}
	}
	if p.Windows == nil {
		closest = "? (the store does not answer)"
	}
	if p.Paused {
		also = append(also, "paused by an operator")
	}
	also = append(also, shadowNote(p.Mode)...)
	return []string{p.ID, closest, share, weight, strings.Join(also, ", ")}
}

// percent returns a part as whole percents, rounded down: 100% is only what is used up.
func percent(part float64) string { return fmt.Sprintf("%d%%", int(part*100)) }
