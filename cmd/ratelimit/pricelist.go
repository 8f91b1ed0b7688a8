package main

import (
	"fmt"
	"io"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// listedPrice is one model of the list, as JSON.
type listedPrice struct {
	Provider string       `json:"provider,omitempty"` // missing: it is from the configuration
	Model    string       `json:"model"`
	Price    *price.Price `json:"price,omitempty"`
	llm.Maxima
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
		return console.Of(w).JSON(all)
	}
	about := q.table.About()
	width := console.Of(w).Columns()
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
		lines = append(append(lines, ""), priceRows(all[start:end], q.config, q.time, width)...)
		start = end
	}
	return console.Of(w).Lines(lines)
}

// serves reports whether an entry is one of the provider that was asked for.
func (q *priceQuestion) serves(e price.Entry) bool {
	found, ok := q.table.Find(q.provider, e.Model, q.time)
	return ok && found == e
}

// priceRows returns the models of one provider as lines. Names that are too long are cut.
func priceRows(all []listedPrice, file string, at time.Time, width int) []string {
	title := all[0].Provider
	if title == "" {
		title = file
	}
	t := console.NewTable(console.Text(title).Shortened(20), console.Number("input"), console.Number("cached"), console.Number("output"), console.Number("up to"))
	for _, l := range all {
		s := l.Price.Sheet(0, "", at)
		t.Add(l.Model, dollarsOf(s.Input), dollarsOf(s.CachedInput), dollarsOf(s.Output), longest(l.Price, at))
	}
	return t.Lines(width)
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
