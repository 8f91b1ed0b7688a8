package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows a reader of stderr where a run is. On a terminal the line is rewritten in place;
// elsewhere there is one line a scenario, and one every few seconds within it.
type progress struct {
	w        io.Writer
	terminal bool
	total    int
	start    time.Time
	current  int
	name     string
	said     time.Time
}

const sayEvery = 5 * time.Second

func newProgress(w io.Writer, total int) *progress {
	f, ok := w.(*os.File)
	terminal := false
	if ok {
		info, err := f.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return &progress{w: w, terminal: terminal, total: total, start: time.Now()}
}

// scenario begins the next one.
func (p *progress) scenario(name string) {
	p.current++
	p.name = name
	p.say("")
}

// step is for those who wait within a scenario.
func (p *progress) step(what string) {
	if p.terminal || time.Since(p.said) >= sayEvery {
		p.say(what)
	}
}

func (p *progress) say(what string) {
	p.said = time.Now()
	begin, end := "", "\n"
	if p.terminal {
		begin, end = "\r\x1b[K", ""
	}
	fmt.Fprintf(p.w, "%s[%*d/%d] %4.0fs  %-24s %s%s", begin, len(fmt.Sprint(p.total)), p.current, p.total, time.Since(p.start).Seconds(), p.name, what, end)
}

// done leaves the terminal on an empty line.
func (p *progress) done() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintf(p.w, "measured %d scenarios in %.0fs\n", p.total, time.Since(p.start).Seconds())
}
