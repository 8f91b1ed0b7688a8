package main

import (
	"image/color"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	otherColour = color.RGBA{0xc2, 0x5b, 0x3f, 0xff}
	deniedInk   = color.RGBA{0xc3, 0xca, 0xd1, 0xff}
)

// writeText puts words at a point, which is their left end if align is draw.XLeft.
func writeText(c draw.Canvas, size, x, y vg.Length, colour color.Color, align text.XAlignment, words string) {
	style := canvas.Style(size, align)
	style.Color = colour
	c.FillText(style, vg.Point{X: x, Y: y}, words)
}

// box fills a rectangle.
func box(c draw.Canvas, colour color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(colour, canvas.Corners(vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}))
}
