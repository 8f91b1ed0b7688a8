package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

func aboutProjects(cfg *config.Config, width int) []string {
	t := console.NewTable(console.Text("project"), console.Text("limits").Below(), console.Number("weight"), console.Number("priority"),
		console.Text("share"), console.Number("waits up to"), console.Text("models").Below())
	tree := config.NewTree(cfg)
	for _, id := range slices.Sorted(maps.Keys(cfg.Projects)) {
		t.Add(aboutProject(id, cfg.Projects[id], allowed(tree, id))...)
	}
	t.Add(aboutProject("(any other)", cfg.Defaults, allowed(tree, "(any other)"))...)
	return t.Lines(width)
}

// allowed returns which models a project may call: those that it names, or else those of the nearest one above it that
// names some.
func allowed(tree *config.Tree, id string) string {
	for path := id; ; {
		if p := tree.At(path); p != nil && len(p.Models) > 0 {
			models := strings.Join(p.Models, ", ")
			if path != id {
				models += " (as " + path + ")"
			}
			return models
		}
		end := strings.LastIndexByte(path, '/')
		if end < 0 {
			return "all"
		}
		path = path[:end]
	}
}

func aboutProject(id string, p *config.Project, models string) []string {
	wait := "not at all"
	if p.MaxWait > 0 {
		wait = p.MaxWait.Round(time.Millisecond).String()
	}
	fit := ""
	if p.Fit {
		fit = ", max_tokens are lowered to what is left"
	}
	return []string{id, aboutLimit(p.Limit, marked) + fit + aboutMode(p.Mode), strconv.Itoa(max(p.Limit.Weight, 1)), strconv.Itoa(p.Limit.Priority), aboutShare(p.Limit), wait, models}
}

// aboutMode returns what follows limits that count calls and deny none.
func aboutMode(mode string) string {
	if mode == config.ModeShadow {
		return ", in shadow"
	}
	return ""
}

// aboutShare returns between which parts of a model's quota the share of a project is: a dash for any.
func aboutShare(l project.Limit) string {
	text := "-"
	switch {
	case l.MinShare > 0 && l.MaxShare > 0:
		text = fmt.Sprintf("%v to %v", l.MinShare, l.MaxShare)
	case l.MinShare > 0:
		text = fmt.Sprintf("at least %v", l.MinShare)
	case l.MaxShare > 0:
		text = fmt.Sprintf("at most %v", l.MaxShare)
	}
	if l.Dedicated {
		text += ", dedicated"
	}
	return text
}

// limitFields finds the limits in a limit of a project.
var limitFields = kind.NewFields[project.Limit](kind.Project)

// aboutLimit returns a limit as a text. mark may say of its limits in tokens and in dollars whether they are hard.
func aboutLimit(l project.Limit, mark func(hard bool, limit string) string) string {
	var limits []string
	tokens, dollars := l.Hard()
	for _, k := range kind.Of(kind.Project) {
		if n := limitFields.Get(&l, k); n > 0 {
			limits = append(limits, markUnit(k, limitText(k, n, l.Resets != limit.Calendar{}), tokens, dollars, mark))
		}
	}
	return listed(limits)
}

// markUnit marks a limit if it is one of tokens or of dollars.
func markUnit(k kind.Kind, text string, tokens, dollars bool, mark func(hard bool, limit string) string) string {
	switch k.Unit() {
	case kind.AllTokens:
		return mark(tokens, text)
	case kind.Dollars:
		return mark(dollars, text)
	}
	return text
}

// unmarked returns a limit as it is.
func unmarked(_ bool, limit string) string { return limit }

// marked returns a limit with a word that says whether it is hard, or may have a debt.
func marked(hard bool, limit string) string {
	if hard {
		return limit + " (hard)"
	}
	return limit + " (debt)"
}

// aboutHardness explains the words of marked, as far as the other lines have them.
func aboutHardness(lines []string, width int) (about []string) {
	text, words := strings.Join(lines, "\n"), console.NewList(2)
	if strings.Contains(text, "(hard)") {
		words.Add("hard", "no answer, however long, uses more than there is: a call reserves the most that it can use, or is cut where nothing more is left")
	}
	if strings.Contains(text, "(debt)") {
		words.Add("debt", "a call reserves what is expected of it; what calls under way use beyond that exceeds the limit, and delays later calls. At most it is the longest answers of all calls at a time: bound these by max_concurrent, or make the limit hard by reserve: most or on_overrun: cut")
	}
	text = strings.Join(words.Lines(width), "\n")
	if text == "" {
		return nil
	}
	return append([]string{""}, words.Lines(width)...)
}

// aboutUsers returns where calls name their users, or nothing if they have none.
func aboutUsers(u config.Users) string {
	var from []string
	if u.Header != "" {
		from = append(from, "the header "+u.Header)
	}
	for _, f := range u.Fields {
		from = append(from, "the field "+string(f))
	}
	return strings.Join(from, ", or else ")
}

// runFields finds the limits in a limit of runs.
var runFields = kind.NewFields[config.Runs](kind.Run)

func aboutRuns(r config.Runs) string {
	var limits []string
	tokens, dollars := project.RunLimit(r).Hard()
	for _, k := range kind.Of(kind.Run) {
		if n := runFields.Get(&r, k); n > 0 {
			limits = append(limits, markUnit(k, limitText(k, n, true), tokens, dollars, marked))
		}
	}
	return fmt.Sprintf("%s for each, which is forgotten after %v", listed(limits), cmp.Or(r.Expires, project.DefaultRunExpires))
}
