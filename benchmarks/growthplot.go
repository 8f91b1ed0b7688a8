package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	growthHeight = 300
	mostTimes    = 1000 // the end of the scale
)

// growthSVG draws a panel for each store, with a line for each dimension: how many times as much as with the least of it a
// call costs. Both scales are logarithmic. It returns nil if there are no reports on growth.
func growthSVG(all []report) []byte {
	drawn := false
	svg := canvas.SVG(growthHeight, func(c draw.Canvas) { drawn = drawGrowth(c, all) })
	if !drawn {
		return nil
	}
	return svg
}

// drawGrowth draws the panels, and reports whether there is a line in any.
func drawGrowth(c draw.Canvas, all []report) (drawn bool) {
	for i, m := range media() {
		left := gap + vg.Length(i)*canvas.Width/3
		panel := growthPanel{c, left + 24, left + canvas.Width/3 - 2*gap}
		panel.axes(m.name)
		line := 0
		for _, r := range all {
			if dimension, ok := strings.CutPrefix(r.name, growthPrefix+m.name+"/"); ok && len(r.rows) > 0 {
				panel.line(r, dimension, line)
				line++
				drawn = true
			}
		}
	}
	return drawn
}

type growthPanel struct {
	draw.Canvas
	left, right vg.Length
}

func (p growthPanel) x(size float64) vg.Length {
	return p.left + vg.Length(math.Log10(max(size, 1))/math.Log10(1<<20))*(p.right-p.left)
}

func (p growthPanel) y(times float64) vg.Length {
	return footHeight + vg.Length(math.Log10(max(times, 0.5)*2)/math.Log10(2*mostTimes))*(growthHeight-headHeight-footHeight)
}

func (p growthPanel) axes(title string) {
	p.FillText(ink(canvas.TitleSize), vg.Point{X: p.left, Y: growthHeight - headHeight/2}, title)
	p.FillText(ink(canvas.TextSize), vg.Point{X: p.left, Y: footHeight / 4}, "how many there are; times the least")
	for times := 1.0; times <= mostTimes; times *= 10 {
		p.StrokeLine2(draw.LineStyle{Color: canvas.Grid, Width: 1}, p.left, p.y(times), p.right, p.y(times))
		p.FillText(ink(canvas.TextSize), vg.Point{X: p.left - 24, Y: p.y(times)}, fmt.Sprint(times))
	}
	for size := 1.0; size <= 1e6; size *= 100 {
		p.FillText(ink(canvas.TextSize), vg.Point{X: p.x(size), Y: footHeight * 0.6}, growthName(int(size)))
	}
}

var growthColours = []color.Color{
	color.RGBA{0x0b, 0x72, 0x85, 0xff}, color.RGBA{0xd9, 0x76, 0x06, 0xff}, color.RGBA{0x7b, 0x4b, 0x94, 0xff}, color.RGBA{0xc0, 0x39, 0x2b, 0xff},
	color.RGBA{0x2e, 0x86, 0x4b, 0xff}, color.RGBA{0x34, 0x5c, 0xb0, 0xff}, color.RGBA{0x8a, 0x6d, 0x3b, 0xff}, color.RGBA{0x55, 0x5f, 0x69, 0xff},
}

// line draws the i-th report of the panel, and its name.
func (p growthPanel) line(r report, dimension string, i int) {
	colour := growthColours[i%len(growthColours)]
	var points []vg.Point
	for _, row := range r.rows {
		size, err := strconv.Atoi(strings.ReplaceAll(row.name, ",", ""))
		if err != nil {
			panic(err) // growthName has made it
		}
		points = append(points, vg.Point{X: p.x(float64(size)), Y: p.y(row.value / r.rows[0].value)})
	}
	p.StrokeLines(draw.LineStyle{Color: colour, Width: 1.5}, points)
	style := ink(canvas.TextSize)
	style.Color = colour
	p.FillText(style, vg.Point{X: p.left + 4, Y: growthHeight - headHeight - vg.Length(i)*13}, dimension)
}
