// Package canvas has what all pictures of this module share: their width, their colours, and how they are written.
package canvas

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

// Sizes, in points.
const (
	Width     = 780
	TitleSize = 12
	TextSize  = 10.5
)

// The colours of what is ours, of texts, and of the lines of a scale.
var (
	Ours = color.RGBA{0x0b, 0x72, 0x85, 0xff}
	Ink  = color.RGBA{0x26, 0x2d, 0x34, 0xff}
	Grid = color.RGBA{0xe6, 0xe9, 0xec, 0xff}
)

// SVG returns the picture that paint draws on white.
func SVG(height vg.Length, paint func(draw.Canvas)) []byte {
	canvas := vgsvg.New(Width, height)
	c := draw.New(canvas)
	c.FillPolygon(color.White, Corners(c.Rectangle))
	paint(c)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		panic(err) // a buffer takes everything
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans, Arial, Helvetica, sans-serif"))
}

// Corners returns the corners of a rectangle, as a polygon.
func Corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}}
}

// Style returns the style of a text in Ink.
func Style(size vg.Length, align text.XAlignment) text.Style {
	return text.Style{
		Color:   Ink,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		XAlign:  align,
		YAlign:  draw.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}
