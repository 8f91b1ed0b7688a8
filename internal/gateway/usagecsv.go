package gateway

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// Names returns the cells of a row that name its project, model, key and time, in the order of the report.
func (r *UsageReport) Names(row *UsageRow) (cells []string) {
	for _, by := range r.By {
		switch books.Dimension(by) {
		case books.ByProject:
			cells = append(cells, row.Project)
		case books.ByModel:
			cells = append(cells, row.Model)
		case books.ByKey:
			cells = append(cells, row.Key)
		case books.ByHour:
			cells = append(cells, row.Time.Format("2006-01-02T15:04Z"))
		case books.ByDay:
			cells = append(cells, row.Time.Format(time.DateOnly))
		}
	}
	return cells
}

// usageColumns are the columns of CSV before those of units, and the numbers in them.
var usageColumns = []struct {
	name string
	cell func(s *UsageSum) string
}{
	{"requests", func(s *UsageSum) string { return strconv.FormatInt(s.Requests, 10) }},
	{"input_tokens", func(s *UsageSum) string { return strconv.FormatInt(s.Input, 10) }},
	{"cached_tokens", func(s *UsageSum) string { return strconv.FormatInt(s.Cached, 10) }},
	{"cache_write_tokens", func(s *UsageSum) string { return strconv.FormatInt(s.CacheWrite, 10) }},
	{"output_tokens", func(s *UsageSum) string { return strconv.FormatInt(s.Output, 10) }},
	{"reasoning_tokens", func(s *UsageSum) string { return strconv.FormatInt(s.Reasoning, 10) }},
	{"dollars", func(s *UsageSum) string { return s.Dollars.Decimal() }},
	{"denied", func(s *UsageSum) string { return strconv.FormatInt(s.Denied, 10) }},
	{"waited", func(s *UsageSum) string { return strconv.FormatInt(s.Waited, 10) }},
	{"waited_seconds", func(s *UsageSum) string { return strconv.FormatFloat(s.WaitTime, 'f', -1, 64) }},
}

// WriteCSV writes a line with the names of the columns, and one for each row. A spreadsheet must not take a name for a
// formula.
func (r *UsageReport) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := append([]string{}, r.By...)
	for _, c := range usageColumns {
		line = append(line, c.name)
	}
	for _, u := range kind.Beside {
		line = append(line, u.Name())
	}
	out.Write(line)
	for i := range r.Rows {
		line = line[:0]
		for _, name := range r.Names(&r.Rows[i]) {
			if strings.ContainsAny(name[:min(len(name), 1)], "=+-@\t\r") {
				name = "'" + name
			}
			line = append(line, name)
		}
		for _, c := range usageColumns {
			line = append(line, c.cell(&r.Rows[i].UsageSum))
		}
		for u := range kind.Beside {
			line = append(line, strconv.FormatInt(*r.Rows[i].Unit(u), 10))
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}
