package main

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes, in points. All text but the ticks starts at a given place, so that it does not matter
// if a viewer's font is wider than ours.
const (
	plotWidth  = 780
	nameWidth  = 190
	valueWidth = 34 // for the figure beside a bar
	gap        = 14 // around panels
	rowHeight  = 19
	barHeight  = 12
	headHeight = 36
	footHeight = 44
	titleSize  = 12
	textSize   = 10.5
)

var (
	barColour = map[kind]color.Color{
		floor: color.RGBA{0xd5, 0xdb, 0xe1, 0xff},
		ours:  color.RGBA{0x0b, 0x72, 0x85, 0xff},
		peer:  color.RGBA{0x9a, 0xa5, 0xb1, 0xff},
	}
	inkColour  = color.RGBA{0x26, 0x2d, 0x34, 0xff}
	gridColour = color.RGBA{0xe6, 0xe9, 0xec, 0xff}
	markColour = color.RGBA{0xe5, 0xa3, 0x8f, 0xff}
)

// svg draws a horizontal bar for each row of each report. The first report says which rows there are.
func (f figure) svg(reports []report) []byte {
	rows := byKind(reports[0].rows)
	height := vg.Length(headHeight + rowHeight*len(rows) + footHeight)
	canvas := vgsvg.New(plotWidth, height)
	c := chart{Canvas: draw.New(canvas), rows: rows, top: height - headHeight, most: f.end(reports)}
	c.FillPolygon(color.White, corners(c.Rectangle))
	c.names()
	width := vg.Length(plotWidth-nameWidth) / vg.Length(len(reports))
	for i, r := range reports {
		left := nameWidth + vg.Length(i)*width
		c.panel(f, f.panels[i].title, r.rows, left, width-gap)
	}

	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		panic(err) // a buffer takes everything
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans, Arial, Helvetica, sans-serif"))
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
		style := ink(textSize)
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
	c.FillText(ink(titleSize), vg.Point{X: left, Y: c.top + 0.5*headHeight}, title)
	c.FillText(ink(textSize), vg.Point{X: left, Y: c.bottom() - 0.75*footHeight}, f.unit)
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
		c.FillPolygon(barColour[r.kind], corners(vg.Rectangle{
			Min: vg.Point{X: x(0), Y: middle - barHeight/2},
			Max: vg.Point{X: end, Y: middle + barHeight/2},
		}))
	}
	c.FillText(ink(textSize), vg.Point{X: end + 4, Y: middle}, value)
}

func (c *chart) grid(x func(float64) vg.Length) {
	style := ink(textSize)
	style.XAlign = draw.XCenter
	for _, tick := range (plot.DefaultTicks{}).Ticks(0, c.most) {
		if tick.IsMinor() {
			continue
		}
		c.line(gridColour, x(tick.Value))
		c.FillText(style, vg.Point{X: x(tick.Value), Y: c.bottom() - 0.28*footHeight}, tick.Label)
	}
}

func (c *chart) line(colour color.Color, x vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: colour, Width: 1}, x, c.bottom(), x, c.top)
}

func ink(size vg.Length) text.Style {
	return text.Style{
		Color:   inkColour,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		YAlign:  draw.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}}
}

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
