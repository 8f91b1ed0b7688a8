package main

import (
	"fmt"
	"image/color"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes, in points. All text but the ticks starts at a given place, so that it does not matter
// if a viewer's font is wider than ours.
const (
	nameWidth  = 190
	valueWidth = 34 // for the figure beside a bar
	gap        = 14 // around panels
	rowHeight  = 19
	barHeight  = 12
	headHeight = 36
	footHeight = 44
)

var (
	barColour = map[kind]color.Color{
		floor: color.RGBA{0xd5, 0xdb, 0xe1, 0xff},
		ours:  canvas.Ours,
		peer:  color.RGBA{0x9a, 0xa5, 0xb1, 0xff},
	}
	markColour = color.RGBA{0xe5, 0xa3, 0x8f, 0xff}
)

// svg draws a horizontal bar for each row of each report. The first report says which rows there are.
func (f figure) svg(reports []report) []byte {
	rows := byKind(reports[0].rows)
	height := vg.Length(headHeight + rowHeight*len(rows) + footHeight)
	return canvas.SVG(height, func(on draw.Canvas) {
		c := chart{Canvas: on, rows: rows, top: height - headHeight, most: f.end(reports)}
		c.names()
		width := vg.Length(canvas.Width-nameWidth) / vg.Length(len(reports))
		for i, r := range reports {
			left := nameWidth + vg.Length(i)*width
			c.panel(f, f.panels[i].title, r.rows, left, width-gap)
		}
	})
}

// chart is a canvas with rows that all panels share.
type chart struct {
	draw.Canvas
	rows []row
	top  vg.Length // of the first row
	most float64   // the end of the scale; longer bars are cut there
}

// middle is the height at which row i is written.
func (c *chart) middle(i int) vg.Length { return c.top - rowHeight*(vg.Length(i)+0.5) }

func (c *chart) bottom() vg.Length { return c.top - rowHeight*vg.Length(len(c.rows)) }

func (c *chart) names() {
	for i, r := range c.rows {
		style := ink(canvas.TextSize)
		if r.kind == ours {
			style.Color = barColour[ours]
		}
		c.FillText(style, vg.Point{X: gap, Y: c.middle(i)}, r.name)
	}
}

func (c *chart) panel(f figure, title string, rows []row, left, width vg.Length) {
	x := func(v float64) vg.Length {
		return left + vg.Length(min(v/c.most, 1))*(width-valueWidth)
	}
	c.FillText(ink(canvas.TitleSize), vg.Point{X: left, Y: c.top + 0.5*headHeight}, title)
	c.FillText(ink(canvas.TextSize), vg.Point{X: left, Y: c.bottom() - 0.75*footHeight}, f.unit)
	c.grid(x)
	if f.mark > 0 {
		c.line(markColour, x(f.mark))
	}
	for i, r := range c.rows {
		c.bar(rows, r.name, c.middle(i), x)
	}
}

// bar is a dash where a panel has no row of that name: not everyone can do everything.
func (c *chart) bar(rows []row, name string, middle vg.Length, x func(float64) vg.Length) {
	value := "–"
	end := x(0)
	for _, r := range rows {
		if r.name != name {
			continue
		}
		value, end = significant(r.value), x(r.value)
		c.FillPolygon(barColour[r.kind], canvas.Corners(vg.Rectangle{
			Min: vg.Point{X: x(0), Y: middle - barHeight/2},
			Max: vg.Point{X: end, Y: middle + barHeight/2},
		}))
	}
	c.FillText(ink(canvas.TextSize), vg.Point{X: end + 4, Y: middle}, value)
}

func (c *chart) grid(x func(float64) vg.Length) {
	style := ink(canvas.TextSize)
	style.XAlign = draw.XCenter
	for _, tick := range (plot.DefaultTicks{}).Ticks(0, c.most) {
		if tick.IsMinor() {
			continue
		}
		c.line(canvas.Grid, x(tick.Value))
		c.FillText(style, vg.Point{X: x(tick.Value), Y: c.bottom() - 0.28*footHeight}, tick.Label)
	}
}

func (c *chart) line(colour color.Color, x vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: colour, Width: 1}, x, c.bottom(), x, c.top)
}

func ink(size vg.Length) text.Style { return canvas.Style(size, draw.XLeft) }

// significant is short: nobody compares tenths of a hundred.
func significant(v float64) string {
	if v < 99.95 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// end is where the scale ends: at the largest value, but no later than the cut and no earlier than
// the mark.
func (f figure) end(reports []report) float64 {
	most := f.mark
	for _, rep := range reports {
		for _, r := range rep.rows {
			most = max(most, r.value)
		}
	}
	if f.cut > 0 {
		most = min(most, f.cut)
	}
	return most
}
