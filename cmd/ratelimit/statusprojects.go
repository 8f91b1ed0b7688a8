package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/project"
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
	var also []string
	windows := slices.SortedStableFunc(slices.Values(p.Windows), func(a, b admin.Window) int {
		return cmp.Compare(windowPressure(b), windowPressure(a))
	})
	if note := harmNotes[p.Harm]; note != "" {
		also = append(also, note)
	}
	closest, share := "no limits", "-"
	for i, w := range windows {
		text := fmt.Sprintf("%s %s / %s", admin.LimitInWords(w.Name), amountOf(w.Unit, w.Limit-w.Remaining), amountOf(w.Unit, w.Limit))
		if w.Reserved > 0 {
			text += fmt.Sprintf(" (%s only reserved)", amountOf(w.Unit, w.Reserved))
		}
		if i > 0 {
			also = append(also, text)
			continue
		}
		closest, share = text, percent(windowPressure(w))
	}
	if most := p.Limit.MaxConcurrent; most > 0 {
		text := "max_concurrent " + numeral.Grouped(int64(most))
		if len(windows) > 0 {
			also = append(also, text)
		} else {
			closest = text
		}
	}
	if p.Windows == nil {
		closest = "? (the store does not answer)"
	}
	return []string{p.ID, closest, share, strings.Join(append(also, projectNotes(p)...), ", ")}
}

// harmNotes are what happens to the calls of a project, by the words of the API.
var harmNotes = map[string]string{"blocked": "all calls are denied", "denied": "calls are denied", "waiting": "calls wait"}

// projectNotes returns the remarks about a project: its weight and shares, a pause, its mode.
func projectNotes(p admin.Project) (notes []string) {
	if p.Limit.Weight > 1 {
		notes = append(notes, fmt.Sprintf("weight %d", p.Limit.Weight))
	}
	notes = append(notes, shareNotes(p.Limit)...)
	if p.Paused {
		notes = append(notes, "paused by an operator")
	}
	return append(notes, shadowNote(p.Mode)...)
}

// shareNotes returns what a project has at least and at most of every limit of a model, if it is set.
func shareNotes(l project.Limit) (notes []string) {
	if l.MinShare > 0 {
		notes = append(notes, fmt.Sprintf("min_share %v", l.MinShare))
	}
	if l.Dedicated {
		notes = append(notes, "dedicated")
	}
	if l.MaxShare > 0 {
		notes = append(notes, fmt.Sprintf("max_share %v", l.MaxShare))
	}
	return notes
}

// percent returns a part as whole percents, rounded down: 100% is only what is used up.
func percent(part float64) string { return fmt.Sprintf("%d%%", int(part*100)) }
