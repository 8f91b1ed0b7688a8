package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	waitingGoroutines = 64
	waitSlices        = 20 // a wait runs for this many slices: 1.2 s unless -time says otherwise
	waitTurns         = 3
	lookEvery         = 20 * time.Millisecond
	reachedWithin     = 0.005
)

// grants is what 64 goroutines were given while they did nothing but wait.
type grants struct {
	achieved float64 // part of the limit, from the drained burst to the end
	over     float64 // the most that was ever granted beyond limit*elapsed+burst
	cpuEach  float64 // microseconds of the process a grant, user and system
}

func (g grants) exceeded() bool { return g.over >= 1 }

func (g grants) reached() bool {
	return math.Abs(g.achieved-1) <= reachedWithin && !g.exceeded()
}

// waiting measures Wait at a limit of perSecond.
func waiting(name string, perSecond int64) scenario {
	about := fmt.Sprintf("Wait by %d goroutines at a limit of %d a second", waitingGoroutines, perSecond)
	return scenario{name, about, func(b *bench) (result, error) {
		all := waiters()
		rounds, had := waitRounds(b, all, perSecond)
		got := make([]grants, len(all))
		for i := range all {
			got[i] = summary(rounds[i])
		}
		title := fmt.Sprintf("%s; median of %d interleaved rounds of %v after the burst was drained, the worst of their excesses", about, waitTurns, waitSlices*b.slice)
		return result{
			reports: []report{waitReport(name, title, all, got)},
			checks:  waitChecks(name, all, got),
			notes:   noise(name, had, cores),
		}, nil
	}}
}

// waitRounds returns what each waiter was granted in each of its turns, and how many cores were free
// between them.
func waitRounds(b *bench, all []waiter, perSecond int64) (got [][]grants, had float64) {
	got = make([][]grants, len(all))
	var free []float64
	for turn := range waitTurns {
		free = append(free, b.freeCores())
		for i, w := range all {
			b.step(fmt.Sprintf("round %d of %d: %s", turn+1, waitTurns, w.name))
			got[i] = append(got[i], w.measure(perSecond, waitSlices*b.slice))
		}
	}
	return got, median(free)
}

// summary is the median of what was reached and spent, and the worst of what was too much.
func summary(rounds []grants) grants {
	sum := grants{
		achieved: medianOf(rounds, func(g grants) float64 { return g.achieved }),
		cpuEach:  medianOf(rounds, func(g grants) float64 { return g.cpuEach }),
		over:     rounds[0].over,
	}
	for _, g := range rounds {
		sum.over = max(sum.over, g.over)
	}
	return sum
}

// measure lets 64 goroutines wait in a loop for d and counts what they are granted.
func (w waiter) measure(perSecond int64, d time.Duration) grants {
	runtime.GC()
	burst := w.burst(perSecond)
	bound := float64(burst)
	start := time.Now()
	q := w.build(perSecond, burst)
	if q.drain != nil {
		q.drain()
		bound = 0
	}
	cpu := cpuTime()
	drained := time.Now()
	counts, stop := waitInLoops(q.wait)

	g := grants{over: math.Inf(-1)}
	var granted float64
	for time.Since(drained) < d {
		time.Sleep(lookEvery)
		granted = float64(counts.sum())
		// The clock is read after the grants are: what was granted in between cannot count as too much.
		g.over = max(g.over, granted-float64(perSecond)*time.Since(start).Seconds()-bound)
	}
	g.achieved = granted / (float64(perSecond) * time.Since(drained).Seconds())
	g.cpuEach = float64((cpuTime() - cpu).Microseconds()) / max(granted, 1)
	stop()
	return g
}

// tally has a cache line for each goroutine's count.
type tally [waitingGoroutines]struct {
	n atomic.Int64
	_ [56]byte
}

func (t *tally) sum() int64 {
	var sum int64
	for i := range t {
		sum += t[i].n.Load()
	}
	return sum
}

// waitInLoops starts the goroutines, each with a context of its own as requests have. stop ends them.
func waitInLoops(wait func(context.Context) error) (counts *tally, stop func()) {
	counts = new(tally)
	parent, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range counts {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(parent)
			defer cancel()
			for wait(ctx) == nil {
				counts[i].n.Add(1)
			}
		})
	}
	return counts, func() {
		cancel()
		wg.Wait()
	}
}

func waitReport(name, title string, all []waiter, got []grants) report {
	rows := make([]row, len(all))
	for i, w := range all {
		g := got[i]
		over := "never"
		if g.exceeded() {
			over = fmt.Sprintf("by %.0f", g.over)
		}
		rows[i] = row{w.name, w.kind, 100 * g.achieved, []string{
			fmt.Sprintf("%.2f", 100*g.achieved), over, fmt.Sprintf("%.2f", g.cpuEach),
		}}
	}
	return report{name: name, title: title, columns: []string{"% of the limit", "exceeded", "CPU us/grant"}, rows: rows}
}

func waitChecks(where string, all []waiter, got []grants) []check {
	thrifty, bestName := bestWaitingPeer(all, got)
	var checks []check
	for i, w := range all {
		if !w.held {
			continue
		}
		g := got[i]
		measured := fmt.Sprintf("%.2f%%", 100*g.achieved)
		if g.exceeded() {
			measured += fmt.Sprintf(", over by %.0f", g.over)
		}
		checks = append(checks, check{
			figure:   fmt.Sprintf("%s: %s reaches the limit, never exceeds it", where, w.name),
			required: "99.5% to 100.5%, never over",
			measured: measured,
			pass:     g.reached(),
		}, check{
			figure:   fmt.Sprintf("%s: %s, CPU a grant against %s", where, w.name, bestName),
			required: "at most 1.0x its cost",
			measured: fmt.Sprintf("%.2fx", g.cpuEach/thrifty.cpuEach),
			pass:     g.cpuEach <= thrifty.cpuEach,
		})
	}
	return checks
}

// bestWaitingPeer is the one that needs least CPU a grant, among those that reach the limit or,
// where none does, among those that keep it: granting what one has not got is cheap.
func bestWaitingPeer(all []waiter, got []grants) (grants, string) {
	best := -1
	for i, w := range all {
		if w.kind == peer && !got[i].exceeded() && (best < 0 || got[i].thriftier(got[best])) {
			best = i
		}
	}
	if best < 0 {
		return grants{cpuEach: math.Inf(1)}, "no peer"
	}
	return got[best], all[best].name
}

// thriftier says whether g reaches the limit where h does not, or does as well for less.
func (g grants) thriftier(h grants) bool {
	if g.reached() != h.reached() {
		return g.reached()
	}
	return g.cpuEach < h.cpuEach
}
