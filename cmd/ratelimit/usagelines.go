package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/kind"
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
	var units []int // those that were used
	var unitColumns []console.Column
	for i, u := range kind.Beside {
		if *r.Total.Unit(i) > 0 {
			units = append(units, i)
			unitColumns = append(unitColumns, console.Number(u.Heading))
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
		for _, u := range units {
			cells = append(cells, count(*s.Unit(u)))
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
