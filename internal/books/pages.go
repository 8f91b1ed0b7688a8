package books

import (
	"iter"
	"sync"
)

// period is an hour or a day.
type period struct {
	at  int64
	day bool
}

// Pages are books in memory. The zero Pages are empty. Any number of goroutines may use them, and none of
// them waits for a reader: what is long is done in slices.
type Pages struct {
	trimming sync.RWMutex // is locked while lines are moved, so that no reader sees them twice

	mu     sync.Mutex // guards everything below, for a slice at a time
	byTime map[period]*page
}

// page is the lines of an hour or a day.
type page struct {
	period
	byOwner map[Owner]*Entry
	lines   []*Entry // in the order in which they came
}

// slice is how many lines are read or moved while others wait.
const slice = 512

// Add adds an entry to the hour of a time in Unix nanoseconds. The hour may have most separate lines.
func (p *Pages) Add(now int64, e *Entry, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page(period{at: HourOf(now)}).add(e, most)
}

// page returns the page of a period, which it makes if it is missing.
func (p *Pages) page(of period) *page {
	found := p.byTime[of]
	if found == nil {
		if p.byTime == nil {
			p.byTime = map[period]*page{}
		}
		found = &page{period: of, byOwner: map[Owner]*Entry{}}
		p.byTime[of] = found
	}
	return found
}

func (p *page) add(e *Entry, most int) {
	line := p.byOwner[e.Owner]
	if line == nil {
		line = p.line(Place(e.Owner, len(p.lines), most, p.has))
	}
	line.Amounts.Add(&e.Amounts)
}

func (p *page) has(o Owner) bool { return p.byOwner[o] != nil }

// line returns the line of an owner, which it adds if it is missing.
func (p *page) line(o Owner) *Entry {
	line := p.byOwner[o]
	if line == nil {
		line = &Entry{Owner: o}
		p.byOwner[o] = line
		p.lines = append(p.lines, line)
	}
	return line
}

// Each yields all lines that a query asks for. Entries that are added meanwhile count or not.
func (p *Pages) Each(q *Query) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		p.trimming.RLock()
		defer p.trimming.RUnlock()
		var room [slice]Line
		for _, of := range p.covered(q) {
			for from := 0; ; from += slice {
				lines := p.read(of, from, room[:0])
				for _, l := range lines {
					if !yield(l) {
						return
					}
				}
				if len(lines) < slice {
					break
				}
			}
		}
	}
}

// covered returns the pages that a query asks for.
func (p *Pages) covered(q *Query) (pages []*page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.byTime {
		if q.Covers(of.at) {
			pages = append(pages, of)
		}
	}
	return pages
}

// read appends a slice of the lines of a page, from the one at an index on.
func (p *Pages) read(of *page, from int, lines []Line) []Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range of.lines[from:min(from+slice, len(of.lines))] {
		lines = append(lines, Line{of.at, of.day, *e})
	}
	return lines
}

// Trim merges old hours into days, and drops old days. A day may have most separate lines.
func (p *Pages) Trim(now int64, r Retention, most int) {
	p.trimming.Lock()
	defer p.trimming.Unlock()
	hours, days := r.Cut(now)
	for _, of := range p.covered(&Query{}) {
		switch {
		case of.at < days:
			p.drop(of)
		case !of.day && of.at < hours:
			for p.move(of, most) {
			}
		}
	}
}

func (p *Pages) drop(of *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byTime, of.period)
}

// move moves a slice of the lines of an hour to its day, and reports whether there are more. An hour
// without lines is dropped.
func (p *Pages) move(of *page, most int) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	day := p.page(period{DayOf(of.at), true})
	rest := max(len(of.lines)-slice, 0)
	for _, e := range of.lines[rest:] {
		day.add(e, most)
		delete(of.byOwner, e.Owner)
	}
	of.lines = of.lines[:rest]
	if rest == 0 {
		delete(p.byTime, of.period)
	}
	return rest > 0
}
