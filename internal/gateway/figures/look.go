package figures

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Window is how many minutes Recent looks back, the current one included.
const Window = 15

// Recent is what became of the last calls.
type Recent struct {
	Minute Sum // of the last 55 to 60 seconds
	Sum        // of the last 15 minutes

	// Passed and Denied are the calls of each of the last 15 minutes, oldest first. The last minute
	// has not ended yet.
	PassedBy, DeniedBy [Window]int64

	ByLimit map[string]int64 // denials by the limit
}

// Denials is how many calls a limit has denied.
type Denials struct {
	Limit string `json:"limit"`
	Count int64  `json:"count"`
}

// Denials returns by which limits calls were denied, the most first.
func (r *Recent) Denials() []Denials { return SortedDenials(r.ByLimit) }

// SortedDenials returns denials by limit, the most first.
func SortedDenials(limits map[string]int64) []Denials {
	list := []Denials{}
	for limit, n := range limits {
		list = append(list, Denials{limit, n})
	}
	slices.SortFunc(list, func(a, b Denials) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Limit, b.Limit))
	})
	return list
}

// Reset makes r that of no calls.
func (r *Recent) Reset() {
	*r = Recent{ByLimit: r.ByLimit}
	clear(r.ByLimit)
}

// Add adds other to r.
func (r *Recent) Add(other *Recent) {
	r.Minute.Add(&other.Minute)
	r.Sum.Add(&other.Sum)
	for i := range r.PassedBy {
		r.PassedBy[i] += other.PassedBy[i]
		r.DeniedBy[i] += other.DeniedBy[i]
	}
	for limit, n := range other.ByLimit {
		r.deny(limit, n)
	}
}

func (r *Recent) deny(limit string, n int64) {
	if r.ByLimit == nil {
		r.ByLimit = map[string]int64{}
	}
	r.ByLimit[limit] += n
}

// Each calls f with each name that had calls in the last 15 minutes, and with what became of them.
// The figures are only valid during the call.
func (f *Figures) Each(do func(of Name, r *Recent)) {
	now := time.Now()
	var r Recent
	for _, l := range f.lots() {
		r.Reset()
		if l.recent(now, &r) {
			do(l.Name, &r)
		}
	}
}

// Lot is what became of the last calls of a name.
type Lot struct {
	Name
	Recent
}

// Largest returns n names with what became of their calls: those first of which the most were denied or refused in the last
// minute, then those with the most in 15 minutes. Beside them it returns what became of the calls of all names in the last
// minute.
func (f *Figures) Largest(n int) (lots []Lot, minute Sum) {
	f.Each(func(of Name, r *Recent) {
		one := Lot{of, *r}
		one.ByLimit = maps.Clone(r.ByLimit)
		lots = append(lots, one)
		minute.Add(&r.Minute)
	})
	slices.SortFunc(lots, func(a, b Lot) int {
		return cmp.Or(cmp.Compare(b.Minute.Denied+b.Minute.Refused, a.Minute.Denied+a.Minute.Refused), cmp.Compare(b.Passed+b.Denied, a.Passed+a.Denied))
	})
	return lots[:min(n, len(lots))], minute
}

// lots returns all lots.
func (f *Figures) lots() (all []*lot) {
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.RLock()
		all = slices.AppendSeq(all, maps.Values(s.lots))
		s.mu.RUnlock()
	}
	return all
}

// recent fills in r, and reports whether there were any calls.
func (l *lot) recent(now time.Time, r *Recent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	minute := tickOf(now, time.Minute)
	for i := len(l.minutes) - 1; i >= 0; i-- {
		s := &l.minutes[i]
		ago := int(minute) - int(s.tick)
		if ago >= Window {
			break
		}
		r.Sum.Add(&s.Sum)
		place := Window - 1 - max(ago, 0) // a clock that went back has left minutes of the future
		r.PassedBy[place] += s.Passed
		r.DeniedBy[place] += s.Denied
	}
	if r.Passed == 0 && r.Denied == 0 && r.Refused == 0 {
		return false
	}
	for i := range l.steps {
		if s := &l.steps[i]; s.tick+uint32(steps) > tickOf(now, step) {
			r.Minute.Add(&s.Sum)
		}
	}
	for _, d := range l.denials {
		if d.minute+Window > minute {
			r.deny(d.limit, int64(d.count))
		}
	}
	return true
}

// Point is what became of the calls of one minute.
type Point struct {
	Time time.Time // when the minute began
	Sum
	limits map[string]int64
}

// Denials returns by which limits calls were denied, the most first.
func (p *Point) Denials() []Denials { return SortedDenials(p.limits) }

// History returns what became of calls in each of the last 60 minutes, oldest first. It adds up
// all names for which of returns true.
func (f *Figures) History(of func(Name) bool) []Point {
	now := time.Now()
	minute := tickOf(now, time.Minute)
	points := make([]Point, Minutes)
	for i := range points {
		points[i].Time = time.Unix(int64(minute)*60-int64(Minutes-1-i)*60, 0).UTC()
		points[i].limits = map[string]int64{}
	}
	place := func(tick uint32) int { return min(Minutes-1-(int(minute)-int(tick)), Minutes-1) }
	for _, l := range f.lots() {
		if of(l.Name) {
			l.addTo(points, place)
		}
	}
	return points
}

// addTo adds the minutes of the lot to points. place returns at which place a minute is, which is
// negative if it is too old.
func (l *lot) addTo(points []Point, place func(tick uint32) int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.minutes {
		if at := place(l.minutes[i].tick); at >= 0 {
			points[at].Sum.Add(&l.minutes[i].Sum)
		}
	}
	for _, d := range l.denials {
		if at := place(d.minute); at >= 0 {
			points[at].limits[d.limit] += int64(d.count)
		}
	}
}
