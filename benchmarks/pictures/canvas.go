package main

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	pictureWidth = 780 // points
	titleSize    = 12
	textSize     = 10.5
)

var (
	oursColour  = color.RGBA{0x0b, 0x72, 0x85, 0xff}
	otherColour = color.RGBA{0xc2, 0x5b, 0x3f, 0xff}
	deniedInk   = color.RGBA{0xc3, 0xca, 0xd1, 0xff}
	inkColour   = color.RGBA{0x26, 0x2d, 0x34, 0xff}
	gridColour  = color.RGBA{0xe6, 0xe9, 0xec, 0xff}
)

// picture returns the SVG of what paint draws on a white canvas.
func picture(height vg.Length, paint func(draw.Canvas)) []byte {
	canvas := vgsvg.New(pictureWidth, height)
	c := draw.New(canvas)
	c.FillPolygon(color.White, corners(c.Rectangle))
	paint(c)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		panic(err) // a buffer takes everything
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans, Arial, Helvetica, sans-serif"))
}

// writeText puts words at a point, which is their left end if align is draw.XLeft.
func writeText(c draw.Canvas, size, x, y vg.Length, colour color.Color, align text.XAlignment, words string) {
	c.FillText(text.Style{
		Color:   colour,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		XAlign:  align,
		YAlign:  draw.YCenter,
		Handler: plot.DefaultTextHandler,
	}, vg.Point{X: x, Y: y}, words)
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}}
}

// box fills a rectangle.
func box(c draw.Canvas, colour color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(colour, corners(vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}))
}
