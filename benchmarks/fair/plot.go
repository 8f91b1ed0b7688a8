package main

import (
	"fmt"
	"image/color"
	"time"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes, in points.
const (
	panelHeight = 170
	perRow      = 3
	footHeight  = 48
	margin      = 34 // of a panel: left and below, for the ticks
	head        = 24 // of a panel, for its title
	gap         = 14
)

var (
	restColour = color.RGBA{0xc3, 0xca, 0xd1, 0xff}

	// clientColours are those of the first clients; the others have restColour.
	clientColours = []color.Color{canvas.Ours, color.RGBA{0xd9, 0x76, 0x06, 0xff}, color.RGBA{0x7b, 0x4b, 0x94, 0xff}}
)

func colourOf(client int) color.Color {
	if client < len(clientColours) {
		return clientColours[client]
	}
	return restColour
}

func svg(l *load, got map[string]*service) []byte {
	rows := (len(got) + perRow - 1) / perRow
	return canvas.SVG(vg.Length(rows*panelHeight+footHeight), func(c draw.Canvas) { paint(c, l, got) })
}

// paint draws a panel for each contestant: what each client got of the quota in the last minute, over
// time, with a dashed line at its share by weight.
func paint(c draw.Canvas, l *load, got map[string]*service) {
	top := 0.5 // of the scale
	for _, s := range got {
		for i := range l.clients {
			for t := time.Duration(0); t < l.length(); t += time.Second {
				if s.lastMinute(i, t) > top {
					top = 1
				}
			}
		}
	}
	for i, name := range names() {
		left := vg.Length(i%perRow) * canvas.Width / perRow
		upper := c.Max.Y - vg.Length(i/perRow)*panelHeight
		drawPanel(c, name, got[name], top, vg.Rectangle{
			Min: vg.Point{X: left + margin, Y: upper - panelHeight + margin/2},
			Max: vg.Point{X: left + canvas.Width/perRow - gap, Y: upper - head},
		})
	}
	legend(c, l)
}

// drawPanel draws one contestant's panel, whose scale ends at top.
func drawPanel(c draw.Canvas, title string, s *service, top float64, r vg.Rectangle) {
	at := func(when time.Duration, part float64) vg.Point {
		return vg.Point{
			X: r.Min.X + r.Size().X*vg.Length(when)/vg.Length(s.load.length()),
			Y: r.Min.Y + r.Size().Y*vg.Length(part/top),
		}
	}
	for _, part := range []float64{0, top / 2, top} {
		left := at(0, part)
		c.StrokeLine2(draw.LineStyle{Color: canvas.Grid, Width: 1}, left.X, left.Y, r.Max.X, left.Y)
		c.FillText(canvas.Style(canvas.TextSize, draw.XRight), vg.Point{X: left.X - 4, Y: left.Y}, fmt.Sprintf("%.0f%%", 100*part))
	}
	for k := 0; k <= s.load.windows; k += max(s.load.windows/5, 1) {
		tick := at(time.Duration(k)*window, 0)
		c.FillText(canvas.Style(canvas.TextSize, draw.XCenter), vg.Point{X: tick.X, Y: tick.Y - 9}, fmt.Sprint(k))
	}
	name := canvas.Style(canvas.TitleSize, draw.XLeft)
	if title == nameOurs {
		name.Color = canvas.Ours
	}
	c.FillText(name, vg.Point{X: r.Min.X, Y: r.Max.Y + 0.45*head}, title)
	for i := len(s.load.clients) - 1; i >= 0; i-- {
		if dashed(s.load) {
			due := float64(s.load.clients[i].weight) / float64(s.load.weights())
			dashes := draw.LineStyle{Color: colourOf(i), Width: 0.7, Dashes: []vg.Length{3, 3}}
			c.StrokeLine2(dashes, r.Min.X, at(0, due).Y, r.Max.X, at(0, due).Y)
		}
		c.StrokeLines(draw.LineStyle{Color: colourOf(i), Width: 1.5}, s.line(i, at))
	}
}

// lastMinute is the part of the quota that a client got in the minute before t, with what it got at t.
func (s *service) lastMinute(client int, t time.Duration) float64 {
	return float64(s.of[client].in(span{t + 1 - window, t + 1})) / float64(s.load.quota)
}

// line is the line of a client. It has a point every second, but none within a level stretch.
func (s *service) line(client int, at func(time.Duration, float64) vg.Point) (points []vg.Point) {
	for t := time.Duration(0); t < s.load.length(); t += time.Second {
		before, now, after := s.lastMinute(client, t-time.Second), s.lastMinute(client, t), s.lastMinute(client, t+time.Second)
		if level := before == now && now == after; !level || t == 0 || t+time.Second == s.load.length() {
			points = append(points, at(t, now))
		}
	}
	return points
}

// dashed reports whether the shares by weight are drawn: not if there are many.
func dashed(l *load) bool { return len(l.clients) <= len(clientColours) }

// legend names the clients, and says what the axes are.
func legend(c draw.Canvas, l *load) {
	axes := fmt.Sprintf("%% of %d %s that each client got in the last minute, over %d minutes", l.quota, l.unit, l.windows)
	if dashed(l) {
		axes += "; dashed: its share by weight"
	}
	c.FillText(canvas.Style(canvas.TextSize, draw.XLeft), vg.Point{X: margin, Y: 0.72 * footHeight}, axes)
	for i := range min(len(l.clients), len(clientColours)+1) {
		name := canvas.Style(canvas.TextSize, draw.XLeft)
		name.Color = colourOf(i)
		label := l.clients[i].name
		if i == len(clientColours) {
			label = fmt.Sprintf("%d others", len(l.clients)-i)
		}
		c.FillText(name, vg.Point{X: vg.Length(margin + 110*i), Y: 0.3 * footHeight}, label)
	}
}
