package books

// period is an hour or a day.
type period struct {
	at  int64
	day bool
}

// Pages are books in memory. The zero Pages are empty. They are not safe for concurrent use.
type Pages struct {
	tallies map[period]*Tally
}

// Add adds an entry to the hour of a time in Unix nanoseconds. The hour may have most separate lines.
func (p *Pages) Add(now int64, e *Entry, most int) {
	p.tally(period{at: HourOf(now)}).Add(e, most)
}

func (p *Pages) tally(of period) *Tally {
	t := p.tallies[of]
	if t == nil {
		if p.tallies == nil {
			p.tallies = map[period]*Tally{}
		}
		t = new(Tally)
		p.tallies[of] = t
	}
	return t
}

// Each calls fn with all lines that a query asks for.
func (p *Pages) Each(q *Query, fn func(Line)) {
	for of, t := range p.tallies {
		if !q.Covers(of.at) {
			continue
		}
		for o, amounts := range t.lines {
			fn(Line{of.at, of.day, Entry{o, *amounts}})
		}
	}
}

// Trim merges old hours into days, and drops old days. A day may have most separate lines.
func (p *Pages) Trim(now int64, r Retention, most int) {
	hours, days := r.Cut(now)
	for of, t := range p.tallies {
		switch {
		case of.at < days:
			delete(p.tallies, of)
		case !of.day && of.at < hours:
			delete(p.tallies, of)
			p.tally(period{DayOf(of.at), true}).AddAll(t, most)
		}
	}
}
