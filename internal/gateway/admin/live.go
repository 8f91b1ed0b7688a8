package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"time"
)

// live sends the overview to all viewers. One goroutine reads it once a second for all of them, and ends when the last
// viewer has left. The overview for viewers of the same number of projects is marshalled once.
type live struct {
	admin *Admin

	mu      sync.Mutex
	groups  map[int]*group // by the number of projects
	stir    chan struct{}  // gets a value when a viewer comes or leaves
	running bool
}

// group is the viewers of one number of projects.
type group struct {
	viewers map[*viewer]struct{}
	last    *Overview // that was sent to all viewers but those that are behind; nil: none yet
}

// viewer is a client that watches the overview.
type viewer struct {
	events chan textEvent
	behind bool // the last overview could not be sent to it: a snapshot comes next
}

const (
	lookEvery = time.Second
	maxUnsent = 2 // events that wait for a viewer that reads slowly
)

// errNobodyLooks ends the streams of viewers after the goroutine that reads the overview has panicked.
var errNobodyLooks = errors.New("internal error")

func newLive(a *Admin) *live {
	return &live{admin: a, groups: map[int]*group{}, stir: make(chan struct{}, 1)}
}

func (a *Admin) overviewLive(r *http.Request) (any, error) {
	n, err := rowCount(r)
	if err != nil {
		return nil, err
	}
	return stream(func(ctx context.Context, f *feed) error {
		v := a.live.join(n)
		defer a.live.leave(n, v)
		for {
			select {
			case <-ctx.Done():
				return nil
			case e, ok := <-v.events:
				if !ok {
					return errNobodyLooks
				}
				if err := f.sendAll([]textEvent{e}); err != nil {
					return err
				}
			}
		}
	}), nil
}

// join adds a viewer of n projects. The first one starts the goroutine.
func (l *live) join(n int) *viewer {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[n]
	if g == nil {
		g = &group{viewers: map[*viewer]struct{}{}}
		l.groups[n] = g
	}
	v := &viewer{events: make(chan textEvent, maxUnsent), behind: true}
	g.viewers[v] = struct{}{}
	if !l.running {
		l.running = true
		go l.run()
	}
	l.wake()
	return v
}

// leave removes a viewer.
func (l *live) leave(n int, v *viewer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.groups[n]; g != nil {
		delete(g.viewers, v)
		if len(g.viewers) == 0 {
			delete(l.groups, n)
		}
	}
	l.wake()
}

// wake wakes the goroutine, because a viewer has come or left.
func (l *live) wake() {
	select {
	case l.stir <- struct{}{}:
	default:
	}
}

// pace returns how often the goroutine reads the overview: once a second, and in a fleet every two seconds, as often as
// the other gateways are asked.
func (l *live) pace() time.Duration {
	if l.admin.fleet.Alone() {
		return lookEvery
	}
	return 2 * lookEvery
}

// run reads and sends the overview as long as there are viewers.
func (l *live) run() {
	defer l.isolate()
	pace := l.pace()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	l.admin.lookout.look(l.admin.streaming, false)
	for l.show() {
		select {
		case <-tick.C:
			l.admin.lookout.look(l.admin.streaming, true)
			if now := l.pace(); now != pace {
				pace = now
				tick.Reset(pace)
			}
		case <-l.stir: // a new viewer gets the last overview
		}
	}
}

// isolate recovers from a panic, so that it ends the streams of viewers and not the gateway.
func (l *live) isolate() {
	fault := recover()
	if fault == nil {
		return
	}
	l.admin.logPanic(fault)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		for v := range g.viewers {
			close(v.events)
		}
	}
	clear(l.groups)
	l.running = false
}

// show sends all viewers what is new since the last look. It returns false if there is none: then the
// goroutine ends.
func (l *live) show() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, g := range l.groups {
		g.show(l.admin.lookout.overview(n))
	}
	l.running = len(l.groups) > 0
	return l.running
}

// show sends a snapshot to the viewers of the group that are behind, and the changes to all others. If
// the overview is the last one, only those who are behind get it.
func (g *group) show(o Overview) {
	var snapshot, delta []byte
	before := g.last
	g.last = &o
	for v := range g.viewers {
		switch {
		case v.behind:
			if snapshot == nil {
				snapshot = marshal(o)
			}
			v.behind = !v.send("snapshot", snapshot)
		case !before.Time.Equal(o.Time):
			if delta == nil {
				delta = marshal(changes(before, &o))
			}
			v.behind = !v.send("delta", delta)
		}
	}
}

// send sends an event to the viewer, unless too many wait for it already.
func (v *viewer) send(name string, text []byte) bool {
	select {
	case v.events <- textEvent{name, text}:
		return true
	default:
		return false
	}
}

func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a type of this package, which marshals
	}
	return text
}

// changes returns what has changed between two overviews.
func changes(before, after *Overview) OverviewDelta {
	d := OverviewDelta{
		Time: after.Time, Mode: after.Mode, StoreLost: after.StoreLost, Totals: after.Totals,
		ModelCount: after.ModelCount, ProjectCount: after.ProjectCount,
		Gateways: append([]string{}, after.Gateways...), Silent: append([]string{}, after.Silent...),
	}
	d.Models, d.GoneModels = changedRows(before.Models, after.Models)
	d.Projects, d.GoneProjects = changedRows(before.Projects, after.Projects)
	return d
}

// changedRows returns the rows that are not the same as before, and the names of those that are gone.
func changedRows(before, after []Row) (changed []Row, gone []string) {
	old := make(map[string]*Row, len(before))
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	changed, gone = []Row{}, []string{}
	for i := range after {
		row := &after[i]
		if same := old[row.Name]; same == nil || !reflect.DeepEqual(same, row) {
			changed = append(changed, *row)
		}
		delete(old, row.Name)
	}
	for i := range before {
		if old[before[i].Name] != nil {
			gone = append(gone, before[i].Name)
		}
	}
	return changed, gone
}
