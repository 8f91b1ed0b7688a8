package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

// usageLines returns a report as lines for people.
func usageLines(r admin.UsageReport, width int) []string {
	if len(r.Rows) == 0 {
		return []string{fmt.Sprintf("nothing was used from %s to %s", r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339))}
	}
	return usageTable(&r).Lines(width)
}

// usageUnits are what calls use beside tokens. The table has columns for those that were used.
var usageUnits = []struct {
	name string
	of   func(s *admin.UsageSum) int64
}{
	{"images", func(s *admin.UsageSum) int64 { return s.Images }},
	{"audio s", func(s *admin.UsageSum) int64 { return s.AudioSeconds }},
	{"characters", func(s *admin.UsageSum) int64 { return s.Characters }},
	{"web searches", func(s *admin.UsageSum) int64 { return s.WebSearches }},
	{"file searches", func(s *admin.UsageSum) int64 { return s.FileSearches }},
	{"pages", func(s *admin.UsageSum) int64 { return s.Pages }},
	{"video s", func(s *admin.UsageSum) int64 { return s.VideoSeconds }},
	{"containers", func(s *admin.UsageSum) int64 { return s.Containers }},
	{"token hours", func(s *admin.UsageSum) int64 { return s.TokenHours }},
	{"search units", func(s *admin.UsageSum) int64 { return s.SearchUnits }},
	{"trained tokens", func(s *admin.UsageSum) int64 { return s.TrainedTokens }},
}

// usageTable returns a table of the rows and, below them, of their sum.
func usageTable(r *admin.UsageReport) *console.Table {
	var columns []console.Column
	for _, by := range r.By {
		c := console.Text(by)
		if by != string(books.ByHour) && by != string(books.ByDay) {
			c = c.ShortenedAtStart(12) // the end of a path matters more
		}
		columns = append(columns, c)
	}
	var units []func(s *admin.UsageSum) int64
	var unitColumns []console.Column
	for _, u := range usageUnits {
		if u.of(&r.Total) > 0 {
			units = append(units, u.of)
			unitColumns = append(unitColumns, console.Number(u.name))
		}
	}
	columns = append(columns, console.Number("requests"), console.Number("input"), console.Number("cached").Leaves(2), console.Number("output"))
	columns = append(append(columns, unitColumns...), console.Number("dollars"), console.Number("denied"), console.Number("waited").Leaves(1))
	t := console.NewTable(columns...)
	add := func(names []string, s *admin.UsageSum) {
		cells := append([]string{}, names...)
		for _, n := range []int64{s.Requests, s.Input, s.Cached, s.Output} {
			cells = append(cells, count(n))
		}
		for _, of := range units {
			cells = append(cells, count(of(s)))
		}
		cells = append(cells, dollars(s), count(s.Denied), count(s.Waited))
		t.Add(cells...)
	}
	for i := range r.Rows {
		names := r.Names(&r.Rows[i])
		for j := range names {
			names[j] = cmp.Or(names[j], "(none)")
		}
		add(names, &r.Rows[i].UsageSum)
	}
	if len(r.Rows) > 1 {
		names := make([]string, len(r.By))
		names[0] = "total"
		add(names, &r.Total)
	}
	return t
}

// count returns a number in at most six characters, or a dash for zero.
func count(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 100_000:
		return numeral.Grouped(n)
	}
	for _, unit := range []string{"k", "M", "G", "T"} {
		n /= 1000
		if n < 10_000 {
			return numeral.Grouped(n) + unit
		}
	}
	return numeral.Grouped(n) + "T"
}

// dollars returns dollars, rounded down like what status shows as used: to cents or, below a dollar, to two digits; or
// a dash for nothing.
func dollars(s *admin.UsageSum) string {
	switch {
	case s.Dollars == 0:
		return "-"
	case s.Dollars >= 100_000*price.Dollar:
		return count(int64(s.Dollars / price.Dollar))
	}
	return strings.TrimPrefix(s.Dollars.Floor().String(), "$")
}
