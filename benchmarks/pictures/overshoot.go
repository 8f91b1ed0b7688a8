package main

import (
	"fmt"
	"image/color"
	"sync"
	"sync/atomic"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/benchmarks/internal/canvas"
)

// The load of the first picture: simultaneous calls on a limit that is far below them.
const (
	calls          = 300
	tokensOfCall   = 360
	requestsMinute = 10
	tokensMinute   = 3000
)

// overrun is how many tokens one product let pass, beside its limit.
type overrun struct {
	name   string
	spent  int
	limit  int // tokens a minute
	detail string
	colour color.Color
}

// overruns are the bars. The figures of others are facts, whose sources are in
// docs/exactness.md; ours is measured when the picture is drawn.
func overruns() []overrun {
	admitted := admit()
	return []overrun{
		{"Bifrost, August 2026", calls * tokensOfCall, tokensMinute, "all 300 calls pass: 108,000 of 3,000 tokens", otherColour},
		{"LiteLLM, January 2026", 663, 100, "5 calls on a limit of 100 tokens spend 663, as reported (litellm#18730)", otherColour},
		{"go-ratelimit", admitted * tokensOfCall, tokensMinute,
			fmt.Sprintf("%d of 300 calls pass: 2,880 of 3,000 tokens", admitted), canvas.Ours},
	}
}

// admit returns how many of the simultaneous calls our limiter admits.
func admit() int {
	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{
		"model": {MaxRPM: requestsMinute, MaxTPM: tokensMinute},
	}})
	if err != nil {
		panic(err) // the quota is a constant
	}
	defer limiter.Close()
	var (
		admitted atomic.Int64
		start    = make(chan struct{})
		callers  sync.WaitGroup
	)
	for range calls {
		callers.Go(func() {
			<-start
			if _, d := limiter.TryAcquire("model", tokensOfCall); d.Allowed {
				admitted.Add(1)
			}
		})
	}
	close(start)
	callers.Wait()
	return int(admitted.Load())
}

// overshoot draws a bar for each overrun, as a part of its limit.
func overshoot() []byte {
	const (
		left, right   = 14, 700 // where bars begin, and where the longest ends
		head, row     = 40, 46
		bar           = 14
		longest       = calls * tokensOfCall / tokensMinute // times the limit
		width         = (right - left) / vg.Length(longest)
		footer        = 20
		height, limit = head + 3*row + footer, left + width
	)
	dashes := draw.LineStyle{Color: canvas.Ink, Width: 1, Dashes: []vg.Length{3, 2}}
	return canvas.SVG(height, func(c draw.Canvas) {
		writeText(c, canvas.TitleSize, left, height-16, canvas.Ink, draw.XLeft,
			"300 simultaneous calls of 360 tokens, on a limit of 10 requests and 3,000 tokens a minute")
		for i, o := range overruns() {
			middle := vg.Length(height - head - row*i - row/2 - bar/2)
			end := left + width*vg.Length(o.spent)/vg.Length(o.limit)
			writeText(c, canvas.TextSize, left, middle+17, o.colour, draw.XLeft, o.name+": "+o.detail)
			box(c, o.colour, left, middle-bar/2, end, middle+bar/2)
			c.StrokeLine2(dashes, limit, middle-bar/2-4, limit, middle+bar/2+4)
			writeText(c, canvas.TextSize, max(end, limit)+6, middle, canvas.Ink, draw.XLeft, fmt.Sprintf("%d%%", 100*o.spent/o.limit))
		}
		writeText(c, canvas.TextSize-1, left, footer/2, canvas.Ink, draw.XLeft, "tokens that were spent, in % of the limit; dashed: the limit")
	})
}
