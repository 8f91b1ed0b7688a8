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
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

func aboutProjects(cfg *config.Config, width int) []string {
	t := console.NewTable(console.Text("project"), console.Text("limits").Below(), console.Number("weight"), console.Number("priority"),
		console.Text("share"), console.Number("waits up to"), console.Text("models").Below())
	for _, id := range slices.Sorted(maps.Keys(cfg.Projects)) {
		t.Add(aboutProject(id, cfg.Projects[id])...)
	}
	t.Add(aboutProject("(any other)", cfg.Defaults)...)
	return t.Lines(width)
}

func aboutProject(id string, p *config.Project) []string {
	models := "all"
	if len(p.Models) > 0 {
		models = strings.Join(p.Models, ", ")
	}
	wait := "not at all"
	if p.MaxWait > 0 {
		wait = p.MaxWait.Round(time.Millisecond).String()
	}
	return []string{id, aboutLimit(p.Limit, marked), strconv.Itoa(max(p.Limit.Weight, 1)), strconv.Itoa(p.Limit.Priority), aboutShare(p.Limit), wait, models}
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

// aboutLimit returns a limit as a text. mark may say of its limits in tokens and in dollars whether they are hard.
func aboutLimit(l project.Limit, mark func(hard bool, limits []string) []string) string {
	month := "30 days"
	if l.Resets != (limit.Calendar{}) {
		month = "month"
	}
	tokens, dollars := l.Hard()
	return listed(slices.Concat(amounts(
		amount{l.RequestsPerMinute, "requests/min"}, amount{l.RequestsPerHour, "requests/hour"}, amount{l.RequestsPerDay, "requests/day"},
	), mark(tokens, amounts(
		amount{l.TokensPerMinute, "tokens/min"}, amount{l.TokensPerHour, "tokens/hour"}, amount{l.TokensPerDay, "tokens/day"},
		amount{l.TokensPerMonth, "tokens/" + month},
	)), mark(dollars, sums(
		sum{l.DollarsPerHour, "/hour"}, sum{l.DollarsPerDay, "/day"}, sum{l.DollarsPerWeek, "/week"},
		sum{l.DollarsPerMonth, "/" + month}, sum{l.Dollars, " in total"},
	)), amounts(amount{l.MaxConcurrent, "at a time"})))
}

// unmarked returns limits as they are.
func unmarked(_ bool, limits []string) []string { return limits }

// marked returns limits with a word for each that says whether it is hard, or may have a debt.
func marked(hard bool, limits []string) []string {
	word := " (debt)"
	if hard {
		word = " (hard)"
	}
	for i := range limits {
		limits[i] += word
	}
	return limits
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
	if text = strings.Join(words.Lines(width), "\n"); text == "" {
		return nil
	}
	return append([]string{""}, words.Lines(width)...)
}

// sum is a limit of money and its period, such as $20.00 and /day. Zero is no limit.
type sum struct {
	most price.Amount
	per  string
}

// sums returns limits of money as texts, such as $20.00/day.
func sums(all ...sum) (texts []string) {
	for _, s := range all {
		if s.most > 0 {
			texts = append(texts, s.most.String()+s.per)
		}
	}
	return texts
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

func aboutRuns(r config.Runs) string {
	tokens, dollars := project.RunLimit(r).Hard()
	limits := slices.Concat(marked(dollars, sums(sum{most: r.Dollars})), marked(tokens, amounts(amount{r.Tokens, "tokens"})), amounts(amount{r.Calls, "calls"}))
	return fmt.Sprintf("%s for each, which is forgotten after %v", listed(limits), cmp.Or(r.Expires, project.DefaultRunExpires))
}
