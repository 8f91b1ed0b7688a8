package main

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// maxUsageWidth is how wide the table of usage is at most.
const maxUsageWidth = 80

// usageLines returns a report as lines for people.
func usageLines(r admin.UsageReport) []string {
	if len(r.Rows) == 0 {
		return []string{fmt.Sprintf("nothing was used from %s to %s", r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339))}
	}
	t := usageTable(&r)
	longest := longestNames(&r)
	for _, fit := range []struct {
		without string // a column that is left out
		least   int    // characters of names
	}{{"", 12}, {">waited", 12}, {">cached", 12}, {"", 4}} {
		t = t.without(fit.without)
		for width := max(longest, fit.least); width >= fit.least; width-- {
			if lines := shortenNames(t, r.By, width).lines(); widest(lines) <= maxUsageWidth {
				return lines
			}
		}
	}
	return t.lines()
}

// usageTable returns a table of the rows and, below them, of their sum.
func usageTable(r *admin.UsageReport) *table {
	t := &table{head: append([]string{}, r.By...)}
	t.head = append(t.head, ">requests", ">input", ">cached", ">output", ">dollars", ">denied", ">waited")
	add := func(names []string, s *admin.UsageSum) {
		cells := append([]string{}, names...)
		for _, n := range []int64{s.Requests, s.Input, s.Cached, s.Output} {
			cells = append(cells, count(n))
		}
		cells = append(cells, dollars(s), count(s.Denied), count(s.Waited))
		t.add(cells...)
	}
	for i := range r.Rows {
		names := usageNames(r, &r.Rows[i])
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
	return t.withoutEmpty("-")
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
		if n /= 1000; n < 10_000 {
			return numeral.Grouped(n) + unit
		}
	}
	return numeral.Grouped(n) + "T"
}

// dollars returns dollars and cents, rounded up, or a dash for nothing.
func dollars(s *admin.UsageSum) string {
	cents := (int64(s.Dollars) + 9_999_999) / 10_000_000
	switch {
	case cents == 0:
		return "-"
	case cents >= 100_000_00:
		return count(cents / 100)
	}
	return fmt.Sprintf("%s.%02d", numeral.Grouped(cents/100), cents%100)
}

// longestNames returns the length of the longest name in the rows.
func longestNames(r *admin.UsageReport) (longest int) {
	for i := range r.Rows {
		for _, name := range usageNames(r, &r.Rows[i]) {
			longest = max(longest, utf8.RuneCountInString(name))
		}
	}
	return longest
}

// shortenNames returns the table with names of at most so many characters. The end of a long name
// stays, which tells more. Times stay as they are.
func shortenNames(t *table, by []string, width int) *table {
	cut := &table{head: t.head}
	for _, row := range t.rows {
		cells := append([]string{}, row...)
		for i, d := range by {
			dated := d == string(books.ByHour) || d == string(books.ByDay)
			if runes := []rune(cells[i]); len(runes) > width && !dated {
				cells[i] = "…" + string(runes[len(runes)-width+1:])
			}
		}
		cut.add(cells...)
	}
	return cut
}

func widest(lines []string) (width int) {
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line))
	}
	return width
}
