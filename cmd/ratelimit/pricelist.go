package main

import (
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

// listWidth is how many columns a list of prices may have.
const listWidth = 80

// listedPrice is one model of the list, as JSON.
type listedPrice struct {
	Provider string       `json:"provider,omitempty"` // missing: it is from the configuration
	Model    string       `json:"model"`
	Price    *price.Price `json:"price"`
}

// list prints the prices of all models, or of those of a provider.
func (q *priceQuestion) list(w io.Writer) error {
	var all []listedPrice
	for e := range q.table.All() {
		if q.provider == "" || q.serves(e) {
			all = append(all, listedPrice(e))
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("there are no prices of the provider %q", q.provider)
	}
	if q.asJSON {
		return printJSON(w, all)
	}
	about := q.table.About()
	lines := []string{
		"Dollars for a million tokens. Longer prompts than in the last column cost more.",
		fmt.Sprintf("Built in: %s %s of %s,", about.Source, about.Version, about.Date),
		about.Licence + ".",
	}
	for start := 0; start < len(all); {
		end := start
		for end < len(all) && all[end].Provider == all[start].Provider {
			end++
		}
		lines = append(append(lines, ""), priceRows(all[start:end], q.config, q.time)...)
		start = end
	}
	return printLines(w, lines)
}

// serves reports whether an entry is one of the provider that was asked for.
func (q *priceQuestion) serves(e price.Entry) bool {
	found, ok := q.table.Find(q.provider, e.Model, q.time)
	return ok && found == e
}

// priceRows returns the models of one provider as lines. Names that are too long are cut.
func priceRows(all []listedPrice, file string, at time.Time) []string {
	title := all[0].Provider
	if title == "" {
		title = file
	}
	t := table{head: []string{title, ">input", ">cached", ">output", ">up to"}}
	for _, l := range all {
		s := l.Price.Sheet(0, "", at)
		t.add(l.Model, dollarsOf(s.Input), dollarsOf(s.CachedInput), dollarsOf(s.Output), longest(l.Price, at))
	}
	room := listWidth
	for i := range t.head[1:] {
		widest := utf8.RuneCountInString(t.head[i+1]) - 1
		for _, row := range t.rows {
			widest = max(widest, utf8.RuneCountInString(row[i+1]))
		}
		room -= widest + 2
	}
	t.head[0] = shortened(t.head[0], room)
	for _, row := range t.rows {
		row[0] = shortened(row[0], room)
	}
	return t.lines()
}

func dollarsOf(r price.Rate) string { return r.String()[1:] }

// longest returns the size of a prompt above which others prices hold, or nothing.
func longest(p *price.Price, at time.Time) string {
	for _, t := range p.Terms() {
		if len(t.Above) > 0 && p.Sheet(t.Above[0].Tokens+1, "", at).Tokens == t.Above[0].Tokens {
			return numeral.Grouped(int64(t.Above[0].Tokens))
		}
	}
	return ""
}

// shortened returns a text, cut off after most characters if it is longer.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
