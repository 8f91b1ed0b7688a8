package gateway

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// history is a chart of what was used in each hour or on each day, and its table.
type history struct {
	Title string
	By    books.Dimension
	Bars  []*bar
	Total UsageSum

	step   time.Duration
	steps  int
	layout string // of times
}

// bar is one hour or one day of a chart. Lengths are in units of the chart, which is chartHeight high.
type bar struct {
	UsageSum
	Time                 string
	X                    int
	PassedHeight, Passed int // the height of the calls that were sent, and the top of their part
	DeniedHeight, Denied int // of the calls that were denied, above them
}

// Sizes of a chart, in units of its own.
const (
	chartHeight = 100
	barWidth    = 20
)

// fill reads the history up to now from the books, and reports whether it could.
func (h *history) fill(x *exchange, now time.Time) bool {
	first := now.Truncate(h.step).Add(-h.step * time.Duration(h.steps-1))
	report, err := x.myUsage(books.Query{Since: first.Unix(), By: []books.Dimension{h.By}})
	if err != nil {
		return false
	}
	h.Total, h.Bars = report.Total, make([]*bar, h.steps)
	for i := range h.Bars {
		h.Bars[i] = new(bar)
	}
	for _, row := range report.Rows {
		if i := int(row.Time.Sub(first) / h.step); i >= 0 && i < h.steps {
			h.Bars[i].UsageSum = row.UsageSum
		}
	}
	most := int64(1)
	for i := range h.Bars {
		most = max(most, h.Bars[i].Requests+h.Bars[i].UsageSum.Denied)
	}
	for i := range h.Bars {
		h.Bars[i].place(i, most)
		h.Bars[i].Time = first.Add(h.step * time.Duration(i)).Format(h.layout)
	}
	return true
}

// place sets the lengths of a bar, of which the longest stands for so many calls.
func (b *bar) place(i int, most int64) {
	b.X = i * barWidth
	b.PassedHeight = int(b.Requests * chartHeight / most)
	b.DeniedHeight = int(b.UsageSum.Denied * chartHeight / most)
	b.Passed = chartHeight - b.PassedHeight
	b.Denied = b.Passed - b.DeniedHeight
}

// write writes the section of a history: its sums, the chart, and a table of the times with calls.
func (h *history) write(p *page) {
	t := &h.Total
	p.put("<section>\n<h2>%s</h2>\n", h.Title)
	p.put("<p>Calls: %s. Tokens: %s in, %s out. Cost: %s.", numeral.Grouped(t.Requests), numeral.Grouped(t.Input), numeral.Grouped(t.Output), t.Dollars)
	p.putIf(t.Denied != 0, " Denied: %s.", numeral.Grouped(t.Denied))
	p.put(`</p>
<svg viewBox="0 0 %s %s" preserveAspectRatio="none" role="img" aria-label="calls by %s: the table below has the numbers">
`, h.steps*barWidth, chartHeight, h.By)
	for _, b := range h.Bars {
		b.draw(p)
	}
	p.put("</svg>\n")
	if t.any() {
		h.writeTable(p)
	}
	p.put("\n</section>\n")
}

// draw draws the bar.
func (b *bar) draw(p *page) {
	p.put("<g><title>%s: %s passed, %s denied</title>\n", b.Time, numeral.Grouped(b.Requests), numeral.Grouped(b.UsageSum.Denied))
	p.put(`<rect class="passed" x="%s" y="%s" width="16" height="%s"></rect>`, b.X, b.Passed, b.PassedHeight)
	p.put("<rect class=\"denied\" x=\"%s\" y=\"%s\" width=\"16\" height=\"%s\"></rect></g>\n", b.X, b.Denied, b.DeniedHeight)
}

// writeTable writes the table of the times with calls.
func (h *history) writeTable(p *page) {
	p.put(`<details>
<summary>The numbers, by %s (UTC)</summary>
<div class="wide" tabindex="0" role="region" aria-label="what was used by %s"><table>
<thead><tr><th scope="col">%s</th><th scope="col">calls</th><th scope="col">denied</th><th scope="col">waited</th><th scope="col">tokens in</th><th scope="col">tokens out</th><th scope="col">dollars</th></tr></thead>
<tbody>
`, h.By, h.By, h.By)
	for _, b := range h.Bars {
		if b.any() {
			p.put(`<tr><th scope="row">%s</th>`, b.Time)
			for _, n := range []int64{b.Requests, b.UsageSum.Denied, b.Waited, b.Input, b.Output} {
				p.put("<td>%s</td>", numeral.Grouped(n))
			}
			p.put("<td>%s</td></tr>\n", b.Dollars)
		}
	}
	p.put("</tbody>\n</table></div>\n</details>")
}

// any reports whether there was any call.
func (s *UsageSum) any() bool { return *s != UsageSum{} }
