package main

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
	"dappco.re/go/core/go-ratelimit/limit"
)

// The traffic of the second picture: a request every four seconds, and two crowds at once, the
// first of which comes in two parts on both sides of a minute's end.
const (
	perMinute = 20
	length    = 4 * time.Minute
)

// traffic returns when requests come, in order.
func traffic() (at []time.Duration) {
	for now := time.Duration(0); now < length; now += time.Second {
		n := 0
		switch {
		case now == 58*time.Second, now == 61*time.Second, now == 150*time.Second:
			n = 25
		case now%(4*time.Second) == 0:
			n = 1
		}
		for range n {
			at = append(at, now)
		}
	}
	return at
}

// shown are the limits of the panels.
var shown = []struct {
	title string
	limit limit.Limit
}{
	{"GCRA, token and leaky bucket, burst 1", limit.PerMinute(perMinute).WithBurst(1)},
	{"GCRA, token and leaky bucket, burst 20", limit.PerMinute(perMinute)},
	{"sliding log: exact in any minute", limit.PerMinute(perMinute).Using(limit.SlidingLog)},
	{"sliding counter: an estimate", limit.PerMinute(perMinute).Using(limit.SlidingCounter)},
	{"fixed window: twice the limit at its end", limit.PerMinute(perMinute).Using(limit.FixedWindow)},
}

// pass returns which requests a limit admits.
func pass(l limit.Limit, at []time.Duration) (admitted []bool) {
	account := new(limit.Account)
	limits := []limit.Limit{l}
	for _, when := range at {
		now := int64(when)
		ok := account.Check(l, now, 1).Allowed
		if ok {
			account.Take(limits, now, 1)
		}
		admitted = append(admitted, ok)
	}
	return admitted
}

// lastMinute returns how many were admitted in the minute that ends at a time.
func lastMinute(at []time.Duration, admitted []bool, end time.Duration) (n int) {
	for i, when := range at {
		if admitted[i] && when <= end && when > end-time.Minute {
			n++
		}
	}
	return n
}

// algorithms draws a panel for each limit: what it admits of the same traffic.
func algorithms() []byte {
	const head, panel, foot = 40, 112, 26
	height := vg.Length(head + panel*len(shown) + foot)
	return canvas.SVG(height, func(c draw.Canvas) {
		writeText(c, canvas.TitleSize, 14, height-16, canvas.Ink, draw.XLeft,
			fmt.Sprintf("The same traffic, and a limit of %d a minute: requests that pass in the last minute", perMinute))
		for i, s := range shown {
			drawAlgorithm(c, s.title, s.limit, height-head-vg.Length(i)*panel)
		}
		writeText(c, canvas.TextSize, 14, 12, canvas.Ink, draw.XLeft,
			"minutes; dashed: the limit; below each line: requests that pass (upper row) and that are denied (lower row)")
	})
}

// drawAlgorithm draws one panel below top.
func drawAlgorithm(c draw.Canvas, title string, l limit.Limit, top vg.Length) {
	const (
		left, right = 40, 766
		base, room  = 88, 60 // of the scale: how far below top it begins, and its height
		most        = 2 * perMinute
	)
	at := traffic()
	admitted := pass(l, at)
	x := func(when time.Duration) vg.Length { return left + (right-left)*vg.Length(when)/vg.Length(length) }
	y := func(n int) vg.Length { return top - base + room*vg.Length(n)/most }
	writeText(c, canvas.TextSize, left, top-14, canvas.Ours, draw.XLeft, title)
	for _, n := range []int{0, perMinute, most} {
		style := draw.LineStyle{Color: canvas.Grid, Width: 1}
		if n == perMinute {
			style = draw.LineStyle{Color: canvas.Ink, Width: 0.7, Dashes: []vg.Length{3, 3}}
		}
		c.StrokeLine2(style, left, y(n), right, y(n))
		writeText(c, canvas.TextSize-1.5, left-5, y(n), canvas.Ink, draw.XRight, fmt.Sprint(n))
	}
	var line []vg.Point
	highest := 0
	for now := time.Duration(0); now < length; now += time.Second {
		n := lastMinute(at, admitted, now)
		highest = max(highest, n)
		line = append(line, vg.Point{X: x(now), Y: y(n)})
	}
	c.StrokeLines(draw.LineStyle{Color: canvas.Ours, Width: 1.5}, line)
	writeText(c, canvas.TextSize, right, top-14, canvas.Ink, draw.XRight, fmt.Sprintf("at most %d in a minute", highest))
	drawRequests(c, at, admitted, x, top-base)
	for minute := time.Duration(0); minute <= length; minute += time.Minute {
		writeText(c, canvas.TextSize-1.5, x(minute), top-base-22, canvas.Ink, draw.XCenter, fmt.Sprint(int(minute.Minutes())))
	}
}

// drawRequests marks each second in which requests pass or are denied.
func drawRequests(c draw.Canvas, at []time.Duration, admitted []bool, x func(time.Duration) vg.Length, base vg.Length) {
	for i, when := range at {
		if i > 0 && at[i-1] == when && admitted[i-1] == admitted[i] { // the mark is there
			continue
		}
		if admitted[i] {
			box(c, canvas.Ours, x(when), base-8, x(when)+2, base-3)
		} else {
			box(c, deniedInk, x(when), base-15, x(when)+2, base-10)
		}
	}
}
