package gateway

import (
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Me says what a client may still use, at every level that its calls are charged to. It is the
// answer to GET /ratelimit/v1/me.
type Me struct {
	Project string  `json:"project"`       // its user is the last name, if the request names one
	Key     string  `json:"key,omitempty"` // the virtual key's id
	Run     string  `json:"run,omitempty"`
	Levels  []Level `json:"levels"` // the project, those above it, the key and the run
}

// Level is a project, a key or a run, and its limits.
type Level struct {
	Kind   string       `json:"kind"` // "project", "key" or "run"
	ID     string       `json:"id"`
	Limits []LevelLimit `json:"limits"` // empty: nothing limits it but the levels above
}

// LevelLimit is one limit of a level, and what is left of it.
type LevelLimit struct {
	Name  string    `json:"limit"`
	Unit  string    `json:"unit"` // "requests", "tokens" or "dollars"
	Max   Quantity  `json:"max"`
	Used  *Quantity `json:"used"`            // what calls in progress have reserved is included; nil while the store does not answer
	Left  *Quantity `json:"left"`            // for the client: of its share, if that is set; nil as Used
	Total bool      `json:"total,omitempty"` // the limit has no window, so what was used of it stays used

	// Reset is how many seconds it takes until nothing is used, if nothing else passes. It is missing
	// in a total.
	Reset float64 `json:"reset_after_seconds,omitempty"`

	// Share is the client's share of the limit, if that denies its calls: the rest is for other projects.
	Share *LevelShare `json:"share,omitempty"`
}

// LevelShare is a project's share of a limit.
type LevelShare struct {
	Max      Quantity `json:"max"`
	Used     Quantity `json:"used"`
	Projects int      `json:"projects"` // how many projects share the limit
	Retry    float64  `json:"retry_after_seconds"`
}

// Quantity is a number of requests, tokens or nanodollars.
type Quantity struct {
	N       int64
	Dollars bool
}

// MarshalJSON writes a number: of dollars, if it is that.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q.Dollars {
		return price.Amount(q.N).MarshalJSON()
	}
	return strconv.AppendInt(nil, q.N, 10), nil
}

// me asks the limits of every level what is left.
func (x *exchange) me() (*Me, error) {
	d, err := x.g.limits.Projects.PeekCall(x.ctx, project.Call{Project: x.path, Key: x.Key, Run: x.Run, RunProject: x.Project})
	if err != nil {
		return nil, err
	}
	me := &Me{Project: x.path, Key: x.Key, Run: x.Run}
	limits := map[string][]LevelLimit{}
	for _, s := range d.Windows() {
		l := newLevelLimit(&s, !d.Local)
		if d.Share.Window == s.Window && d.Owner == s.Owner {
			l.setShare(&d)
		}
		limits[s.Owner] = append(limits[s.Owner], l)
	}
	add := func(kind, id, owner string) {
		if id != "" {
			me.Levels = append(me.Levels, Level{kind, id, append([]LevelLimit{}, limits[owner]...)})
		}
	}
	for id := x.path; id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] {
		add("project", id, id)
	}
	add("key", me.Key, "key "+me.Key)
	add("run", me.Run, "run "+me.Run)
	return me, nil
}

// setShare enters the share that denies calls of the client.
func (l *LevelLimit) setShare(d *project.Decision) {
	of := func(n int64) Quantity { return Quantity{n, l.Max.Dollars} }
	l.Share = &LevelShare{of(d.Share.Max), of(d.Share.Used), d.Share.Projects, d.RetryAfter.Round(time.Millisecond).Seconds()}
	if l.Left != nil {
		l.Left.N = min(l.Left.N, max(0, d.Share.Max-d.Share.Used))
	}
}

// newLevelLimit returns a limit, and what is used of it if that is known.
func newLevelLimit(s *project.Standing, known bool) LevelLimit {
	w := s.Window
	of := func(n int64) *Quantity { return &Quantity{n, w.Unit == project.Dollars} }
	l := LevelLimit{Name: w.Name, Unit: w.Unit, Max: *of(w.Count), Total: w.Total()}
	if !known {
		return l
	}
	l.Used, l.Left = of(max(s.Used, w.Count-s.Remaining)), of(max(s.Remaining, 0))
	if !l.Total {
		l.Reset = s.ResetAfter.Round(time.Millisecond).Seconds()
	}
	return l
}
