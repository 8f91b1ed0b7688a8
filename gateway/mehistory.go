package gateway

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
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

// Width returns the width of the chart.
func (h *history) Width() int { return h.steps * barWidth }

// Used reports whether there was any call.
func (h *history) Used() bool { return h.Total != (UsageSum{}) }

// Used reports whether there was any call.
func (b *bar) Used() bool { return b.UsageSum != (UsageSum{}) }
