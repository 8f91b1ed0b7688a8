package main

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// sharesOf is what one project has of a quota beside another, in percent, by the rule
// before decision 89 and by that of today.
type sharesOf struct {
	scene            string
	due, before, now float64
}

// sharesByRule are the bars of the picture. Those of the earlier rule are facts that cannot be measured any more; those of
// today are what TestSharesHoldInScenes and TestSlotsAreSharedOverNodes log.
var sharesByRule = []sharesOf{
	{"answers of 15 s, weights 3 and 1", 75, 28, 75},
	{"answers of 20 s", 75, 37, 75},
	{"answers of 22 s", 75, 40, 75},
	{"answers of 35 s", 75, 64, 75},
	{"one beside a crowd of 150 users", 50, 35, 50},
	{"one beside a crowd of 1,300 users", 50, 25, 50},
	{"one beside 600 users, answers of 20 s", 50, 10, 50},
	{"one beside three teams of 40 users", 50, 31, 50},
	{"does not wait, beside a hog", 50, 0, 50},
	{"does not wait, of weight 9", 90, 0, 90},
	{"a minimum, beside a higher priority", 30, 0, 30},
	{"steady, beside a late crowd", 50, 20, 50},
	{"12 slots, two nodes, weights 3 and 1", 75, 51, 75},
	{"12 slots, three nodes", 75, 25, 75},
	{"a key beside one that invents users", 50, 8, 50},
	{"honest, beside one that asks for a tenth", 50, 9, 50},
}

// shares draws two bars for each scene, with a line at what is due.
func shares() []byte {
	const (
		left, right = 270, 730 // of 0 and 100%
		head, row   = 40, 30
		bar         = 9
		footer      = 24
	)
	height := vg.Length(head + row*len(sharesByRule) + footer)
	at := func(percent float64) vg.Length { return left + (right-left)*vg.Length(percent)/100 }
	return canvas.SVG(height, func(c draw.Canvas) {
		writeText(c, canvas.TitleSize, 14, height-16, canvas.Ink, draw.XLeft, "What a project has of a quota, where another takes all that it can get")
		for _, percent := range []float64{0, 25, 50, 75, 100} {
			c.StrokeLine2(draw.LineStyle{Color: canvas.Grid, Width: 1}, at(percent), footer, at(percent), height-head)
			writeText(c, canvas.TextSize, at(percent), footer-9, canvas.Ink, draw.XCenter, fmt.Sprintf("%.0f%%", percent))
		}
		for i, s := range sharesByRule {
			middle := height - head - vg.Length(row*i) - row/2
			writeText(c, canvas.TextSize, left-10, middle, canvas.Ink, draw.XRight, s.scene)
			box(c, otherColour, left, middle+1, at(s.before), middle+1+bar)
			box(c, canvas.Ours, left, middle-1-bar, at(s.now), middle-1)
			c.StrokeLine2(draw.LineStyle{Color: canvas.Ink, Width: 1.5}, at(s.due), middle-bar-3, at(s.due), middle+bar+3)
			writeText(c, canvas.TextSize-2, at(s.before)+5, middle+1+bar/2, otherColour, draw.XLeft, fmt.Sprintf("%.0f", s.before))
			writeText(c, canvas.TextSize-2, max(at(s.now), at(s.due))+5, middle-1-bar/2, canvas.Ours, draw.XLeft, fmt.Sprintf("%.0f", s.now))
		}
		writeText(c, canvas.TextSize, 14, footer-9, otherColour, draw.XLeft, "before")
		writeText(c, canvas.TextSize, 64, footer-9, canvas.Ours, draw.XLeft, "now")
		writeText(c, canvas.TextSize, 100, footer-9, canvas.Ink, draw.XLeft, "line: due")
	})
}
