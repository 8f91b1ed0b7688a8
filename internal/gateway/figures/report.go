package figures

import (
	"encoding/binary"
	"errors"
	"time"
)

// Report is what became of the last calls at one gateway, and which calls wait there, as gateways of a fleet report it to
// each other. Every viewer has it read from all gateways every two seconds, so it has a binary form: varints, and texts
// behind their lengths.
type Report struct {
	Totals  Sum // of the last minute, of all names
	Lots    []Lot
	Waiting []Waiting
	Active  int // requests in progress
}

// Waiting is how many calls of a project wait for a model, and how long the first of them has waited.
type Waiting struct {
	Project, Model string
	Count          int
	Longest        time.Duration
}

// MaxReported is how many lots a report may have, and how many rows of waiting calls. maxLimits is how many limits a lot of
// a report may name.
const (
	MaxReported = 1000
	maxLimits   = 256
)

// numbers is how many numbers of calls a lot has in the binary form, which begins with it: gateways of a version that
// counts something else do not understand each other.
var numbers = func() (n int64) {
	new(Recent).each(func(*int64) { n++ })
	return n
}()

// Bytes returns the binary form of the report.
func (r *Report) Bytes() []byte {
	w := writer(make([]byte, 0, 1024+200*len(r.Lots)))
	w.number(numbers)
	r.Totals.each(w.add)
	w.number(int64(r.Active))
	w.number(int64(len(r.Lots)))
	for i := range r.Lots {
		lot := &r.Lots[i]
		w.text(lot.Project)
		w.text(lot.Model)
		w.text(lot.Key)
		lot.each(w.add)
		w.number(int64(len(lot.ByLimit)))
		for limit, n := range lot.ByLimit {
			w.text(limit)
			w.number(n)
		}
	}
	w.number(int64(len(r.Waiting)))
	for i := range r.Waiting {
		of := &r.Waiting[i]
		w.text(of.Project)
		w.text(of.Model)
		w.number(int64(of.Count))
		w.number(int64(of.Longest))
	}
	return w
}

var errReport = errors.New("this is not the report of a gateway of this version")

// ReadReport reads the binary form of a report. Lists that are longer than a gateway's, or than the bytes that are left,
// are an error, so that a small message cannot take much memory.
func ReadReport(b []byte) (report Report, err error) {
	r := reader{rest: b}
	r.bad = r.number() != numbers
	report.Totals.each(r.read)
	report.Active = int(r.number())
	report.Lots = make([]Lot, r.length(MaxReported))
	for i := range report.Lots {
		lot := &report.Lots[i]
		lot.Name = Name{r.text(), r.text(), r.text()}
		lot.each(r.read)
		for range r.length(maxLimits) {
			limit := r.text()
			lot.deny(limit, r.number())
		}
	}
	report.Waiting = make([]Waiting, r.length(MaxReported))
	for i := range report.Waiting {
		report.Waiting[i] = Waiting{r.text(), r.text(), int(r.number()), time.Duration(r.number())}
	}
	if r.bad || len(r.rest) > 0 {
		return Report{}, errReport
	}
	return report, nil
}

// each calls do with the numbers of a sum, in the order of the binary form.
func (s *Sum) each(do func(n *int64)) {
	for _, n := range [...]*int64{
		&s.Passed, &s.Failed, &s.Denied, &s.Refused, &s.Waited, &s.Input, &s.Output, &s.Dollars, &s.Estimated, &s.Actual,
	} {
		do(n)
	}
}

// each calls do with the numbers of the last calls, in the order of the binary form.
func (r *Recent) each(do func(n *int64)) {
	r.Minute.each(do)
	r.Sum.each(do)
	for i := range Window {
		do(&r.PassedBy[i])
		do(&r.DeniedBy[i])
	}
}

// writer is a binary form that is being written.
type writer []byte

func (w *writer) number(n int64) { *w = binary.AppendVarint(*w, n) }
func (w *writer) add(n *int64)   { w.number(*n) }

func (w *writer) text(s string) {
	w.number(int64(len(s)))
	*w = append(*w, s...)
}

// reader reads a binary form. What it returns after it has become bad is zero.
type reader struct {
	rest []byte
	bad  bool // a writer has not written this
}

func (r *reader) read(n *int64) { *n = r.number() }

func (r *reader) number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 || r.bad {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// length reads how many things follow, each of which takes a byte at least.
func (r *reader) length(most int) int {
	n := r.number()
	if n < 0 || n > int64(min(most, len(r.rest))) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.length(len(r.rest))
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
