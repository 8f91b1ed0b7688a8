package admin

import (
	"cmp"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/price"
)

// standings is where all models stand, or all projects.
type standings struct {
	byName map[string]*standing
	list   []*standing // those closest to their limits first, and then those that are new
	turn   uint64      // of the next that is new
}

// standing is where a model or a project stands.
type standing struct {
	name     string
	turn     uint64 // decides which look asks it for its limits
	look     uint64 // the last look that has seen it
	asked    time.Time
	limits   []Dimension // as its limits last answered
	shares   []Dimension // of a project: of the limits of models
	weight   int
	pause    *RowPause
	provider []ProviderLimit

	harm     int     // the worst that happens to its calls
	pressure float64 // the largest part that is used of a dimension
	closest  string  // the name of that dimension
	recent   figures.Recent
	waiting  int
	longest  time.Duration
}

func newStandings() *standings { return &standings{byName: map[string]*standing{}} }

// saw reports whether a look has seen a name already.
func (all *standings) saw(name string, look uint64) bool {
	s := all.byName[name]
	return s != nil && s.look == look
}

// see returns the standing of a name that a look sees. When the look sees it for the first time, it has
// no calls and no shares.
func (all *standings) see(name string, look uint64) *standing {
	s := all.byName[name]
	if s == nil {
		s = &standing{name: name, turn: all.turn}
		all.turn++
		all.byName[name] = s
		all.list = append(all.list, s)
	}
	if s.look != look {
		s.look, s.waiting, s.longest, s.shares = look, 0, 0, s.shares[:0]
		s.recent.Reset()
	}
	return s
}

// sweep forgets what a look has not seen.
func (all *standings) sweep(look uint64) {
	all.list = slices.DeleteFunc(all.list, func(s *standing) bool {
		if s.look != look {
			delete(all.byName, s.name)
		}
		return s.look != look
	})
}

// sort finds out how close each is to its limits, and puts those first that are closest.
func (all *standings) sort() {
	for _, s := range all.list {
		s.pressure, s.closest = 0, ""
		s.press(s.limits)
		s.harm = s.harmed()
	}
	slices.SortFunc(all.list, byHarm)
}

// What may happen to the calls of a model or a project, the worst last.
const (
	unharmed = iota
	closeToLimit
	haveToWait
	someDenied
	allDenied
)

// harms are the words of the API for these.
var harms = [...]string{"", "near", "waiting", "denied", "blocked"}

// near is from which part of a limit on it is close to its end.
const near = 0.9

// harmed returns the worst that happens to the calls now. Borrowing what nobody else wants harms nobody, so shares do
// not count.
func (s *standing) harmed() int {
	minute := &s.recent.Minute
	switch stopped := minute.Denied + minute.Refused; {
	case stopped > 0 && minute.Passed == 0 && s.waiting == 0:
		return allDenied
	case stopped > 0:
		return someDenied
	case s.waiting > 0:
		return haveToWait
	case s.pressure >= near:
		return closeToLimit
	}
	return unharmed
}

// wait counts calls that wait, and how long the first of them has waited.
func (s *standing) wait(n int, waited time.Duration) {
	s.waiting += n
	s.longest = max(s.longest, waited)
}

// press raises the pressure to that of the dimensions.
func (s *standing) press(dimensions []Dimension) {
	for i := range dimensions {
		d := &dimensions[i]
		if part := d.Used / d.Limit; d.Limit > 0 && part > s.pressure {
			s.pressure, s.closest = part, d.Name
		}
	}
}

// byHarm orders standings by what happens to their calls: those first of which all are denied, then those of which some
// are, those whose calls wait, and those close to a limit of their own; of equals, those of which none has passed for a
// quarter of an hour, those with more such calls, and those closer to a limit.
func byHarm(a, b *standing) int {
	stopped := func(s *standing) int64 { return s.recent.Minute.Denied + s.recent.Minute.Refused }
	passes := func(s *standing) int {
		if s.harm != allDenied || slices.Max(s.recent.PassedBy[:]) > 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(b.harm, a.harm), cmp.Compare(passes(a), passes(b)), cmp.Compare(stopped(b), stopped(a)), cmp.Compare(b.waiting, a.waiting), byPressure(a, b))
}

// byPressure orders standings by what is closest to its limit, and then by calls.
func byPressure(a, b *standing) int {
	return cmp.Or(cmp.Compare(b.pressure, a.pressure),
		cmp.Compare(b.recent.Passed+b.recent.Denied, a.recent.Passed+a.recent.Denied), cmp.Compare(a.name, b.name))
}

// rowsOf returns the rows of standings. switched fills in what an operator has switched.
func rowsOf(list []*standing, switched func(*Row)) []Row {
	rows := make([]Row, len(list))
	for i, s := range list {
		rows[i] = s.row()
		switched(&rows[i])
	}
	return rows
}

func (s *standing) row() Row {
	r := &s.recent
	row := Row{
		Name: s.name, Harm: harms[s.harm], Pressure: s.pressure, Closest: s.closest, Pause: s.pause, Weight: s.weight,
		Dimensions: make([]Dimension, 0, len(s.limits)+len(s.shares)),
		Waiting:    s.waiting, LongestWait: s.longest.Seconds(),
		Minute: Minute{
			Passed: r.Minute.Passed, Failed: r.Minute.Failed, Denied: r.Minute.Denied, Refused: r.Minute.Refused,
			Tokens: r.Minute.Input + r.Minute.Output, Dollars: price.Amount(r.Minute.Dollars),
		},
		DeniedBy: r.Denials(), Spark: slices.Clone(r.PassedBy[:]), SparkDenied: slices.Clone(r.DeniedBy[:]),
		Estimated: r.Estimated, Actual: r.Actual, Provider: s.provider,
	}
	row.Dimensions = append(append(row.Dimensions, s.limits...), s.shares...)
	return row
}
