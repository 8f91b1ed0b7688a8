package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/gateway/fleet"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// quiet is a gateway and its API without listeners, so that both can be in a bubble.
func quiet(t *testing.T, yaml string) (*gateway.Gateway, *Admin) {
	t.Helper()
	g, err := gateway.New(gatewaytest.Config(t, yaml, "http://127.0.0.1:1"), gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	a, err := New(g, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return g, a
}

// screen is a client that watches.
type screen struct {
	http.ResponseWriter
	events chan string // what it has read; nobody reads on while it is full
	part   string      // the beginning of an event
	ctx    context.Context
	leave  context.CancelFunc
	ended  chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.part += string(p)
	return len(p), s.ctx.Err()
}

func (s *screen) FlushError() error {
	select {
	case s.events <- s.part:
		s.part = ""
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// watch lets a client watch, who reads as many events ahead as room says.
func watch(t *testing.T, a *Admin, path string, room int) *screen {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &screen{httptest.NewRecorder(), make(chan string, room), "", ctx, leave, make(chan struct{})}
	req := httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1"+path, nil)
	req.RemoteAddr = "127.0.0.1:1"
	go func() {
		defer close(s.ended)
		a.ServeHTTP(s, req)
	}()
	if begin := <-s.events; !strings.HasPrefix(begin, ":") {
		t.Fatalf("it begins with %q", begin)
	}
	return s
}

// next returns the next event, whose name is to be this one, and checks it by its schema.
func next[T any](t *testing.T, s *screen, name string) (value T) {
	t.Helper()
	event := <-s.events
	data, ok := strings.CutPrefix(event, "event: "+name+"\ndata: ")
	if !ok {
		t.Fatalf("%.200q is no %s", event, name)
	}
	schema := map[string]string{"snapshot": "Overview", "delta": "OverviewDelta"}[name]
	var parsed any
	if err := json.Unmarshal([]byte(data), &parsed); err != nil {
		t.Fatal(err)
	}
	if err := (&validator{document(t)}).validate(parsed, object{"$ref": "#/components/schemas/" + schema}); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func names(rows []Row) (list []string) {
	for _, r := range rows {
		list = append(list, r.Name)
	}
	return list
}

// Who watches gets a snapshot, and every second what has changed: rows that are new or different as a
// whole, and the names of those that are gone.
func TestLiveOverview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := quiet(t, usual)
		s := watch(t, a, "/v1/overview/live", 8)
		first := next[Overview](t, s, "snapshot")
		testkit.Equal(t, "the models", []string{"gpt-4o", "openai/gpt-6*"}, names(first.Models))
		testkit.Equal(t, "the projects", []string{"search", "small"}, names(first.Projects))

		idle := next[OverviewDelta](t, s, "delta")
		if len(idle.Models)+len(idle.Projects)+len(idle.GoneModels)+len(idle.GoneProjects) > 0 || idle.Time.Sub(first.Time) != time.Second {
			t.Errorf("nothing has changed in %v: %+v", idle.Time.Sub(first.Time), idle)
		}

		g.Projects().Spend(t.Context(), project.Call{Project: "small"})
		g.Figures().Count(figures.Name{Project: "new", Model: "gpt-4o"}, &figures.Call{Input: 7})
		d := next[OverviewDelta](t, s, "delta")
		testkit.Equal(t, "the models that have changed", []string{"gpt-4o"}, names(d.Models))
		testkit.Equal(t, "the projects that have changed", []string{"small", "new"}, names(d.Projects))
		if small := d.Projects[0]; small.Pressure != 0.5 || small.Closest != "requests_per_minute" || d.Totals.Passed != 1 || d.ProjectCount != 3 {
			t.Errorf("%+v", d)
		}

		g.Projects().UnsetLimit("search")
		d = next[OverviewDelta](t, s, "delta")
		testkit.Equal(t, "the projects that are gone", []string{"search"}, d.GoneProjects)

		for range 20 {
			next[OverviewDelta](t, s, "delta")
		}
		s.leave()
		<-s.ended
		synctest.Wait()
		if a.live.running || len(a.live.groups) != 0 {
			t.Error("it still looks, and nobody watches")
		}

		again := watch(t, a, "/v1/overview/live?projects=10", 1)
		next[Overview](t, again, "snapshot")
		again.leave()
		<-again.ended
	}) // which fails if the goroutine has not ended
}

// oneBus is a bus on which a test sends what other gateways would.
type oneBus struct{ receive func(message []byte) }

func (b *oneBus) Publish(context.Context, []byte) error { return nil }

func (b *oneBus) Subscribe(receive func([]byte)) (func(), error) {
	b.receive = receive
	return func() {}, nil
}

// While there is another gateway, the overview is new every two seconds, and every second when it has left.
func TestLiveOverviewOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := quiet(t, usual)
		var carrier oneBus
		f, err := fleet.Join(&carrier, "a", a.answer)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a.fleet = f
		carrier.receive([]byte("\x01fleet " + `{"kind": "hello", "from": "1", "name": "b"}` + "\n"))
		s := watch(t, a, "/v1/overview/live", 8)
		at := next[Overview](t, s, "snapshot").Time
		for i, want := range []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, time.Second, time.Second} {
			if i == 2 {
				carrier.receive([]byte("\x01fleet " + `{"kind": "bye", "from": "1"}` + "\n"))
			}
			d := next[OverviewDelta](t, s, "delta")
			if pause := d.Time.Sub(at); pause != want {
				t.Errorf("delta %d comes after %v: want %v", i, pause, want)
			}
			at = d.Time
		}
		s.leave()
		<-s.ended
	})
}

// One goroutine looks for a hundred viewers, and each event is marshalled once for all that want as many
// projects.
func TestLiveViewersShareOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := quiet(t, usual)
		var all []*viewer
		for i := range 100 {
			all = append(all, a.live.join(rowCounts[i%2]))
		}
		seconds := uint64(10)
		for second := range seconds + 1 { // a snapshot, and then deltas
			texts := map[*byte]int{}
			for _, v := range all {
				texts[&(<-v.events).Data[0]]++
			}
			if len(texts) != 2 && second > 0 { // viewers may come while snapshots are sent to those before them
				t.Fatalf("there are %d texts for two numbers of projects", len(texts))
			}
		}
		if a.lookout.looks != seconds+1 {
			t.Errorf("%d looks in %d seconds", a.lookout.looks, seconds)
		}
		for i, v := range all {
			a.live.leave(rowCounts[i%2], v)
		}
	})
}

// A viewer that reads too slowly holds up nobody, and gets a snapshot when it reads again.
func TestSlowViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := quiet(t, usual)
		slow, quick := watch(t, a, "/v1/overview/live", 0), watch(t, a, "/v1/overview/live", 0)
		next[Overview](t, slow, "snapshot")
		next[Overview](t, quick, "snapshot")
		for i := range 10 {
			g.Figures().Count(figures.Name{Project: fmt.Sprint("p", i)}, new(figures.Call))
			if d := next[OverviewDelta](t, quick, "delta"); d.Totals.Passed != int64(i+1) {
				t.Fatalf("after %d seconds: %+v", i+1, d.Totals)
			}
		}
		for range maxUnsent + 1 { // one is being written, the others wait
			next[OverviewDelta](t, slow, "delta")
		}
		if o := next[Overview](t, slow, "snapshot"); o.Totals.Passed != 10 || !slices.Contains(names(o.Projects), "p9") {
			t.Errorf("%+v", o.Totals)
		}
		slow.leave()
		quick.leave()
		<-slow.ended
		<-quick.ended
	})
}

// Deltas lead from a snapshot to what another viewer gets as its snapshot.
func TestDeltasLeadToTheOverview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := quiet(t, usual)
		s := watch(t, a, "/v1/overview/live?projects=10", 4)
		rows := map[string]Row{}
		for _, r := range next[Overview](t, s, "snapshot").Projects {
			rows[r.Name] = r
		}
		for i := range 30 {
			id := fmt.Sprintf("p%02d", i%15)
			if err := g.Projects().SetLimit(id, project.Limit{RequestsPerMinute: 20}); err != nil {
				t.Fatal(err)
			}
			for range i {
				g.Projects().Spend(t.Context(), project.Call{Project: id})
				g.Figures().Count(figures.Name{Project: id}, &figures.Call{Denied: i%2 == 0, Limit: "requests_per_minute"})
			}
			d := next[OverviewDelta](t, s, "delta")
			for _, r := range d.Projects {
				rows[r.Name] = r
			}
			for _, name := range d.GoneProjects {
				delete(rows, name)
			}
		}
		other := watch(t, a, "/v1/overview/live?projects=10", 4)
		o := next[Overview](t, other, "snapshot")
		if len(rows) != 10 {
			t.Errorf("there are %d rows", len(rows))
		}
		for _, want := range o.Projects {
			testkit.Equal(t, want.Name, want, rows[want.Name])
		}
		s.leave()
		other.leave()
		<-s.ended
		<-other.ended
	})
}

// When the server stops, streams end.
func TestLiveEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := quiet(t, usual)
		s := watch(t, a, "/v1/overview/live", 4)
		next[Overview](t, s, "snapshot")
		a.EndStreams()
		<-s.ended
	})
}

// A panic of the one who looks ends the streams, and not the gateway. The next viewer is looked for again.
func TestLookPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := quiet(t, usual)
		s := watch(t, a, "/v1/overview/live", 4)
		next[Overview](t, s, "snapshot")
		a.lookout.mu.Lock()
		models := a.lookout.models
		a.lookout.models = nil
		a.lookout.mu.Unlock()
		<-s.ended
		a.lookout.models = models
		again := watch(t, a, "/v1/overview/live", 4)
		next[Overview](t, again, "snapshot")
		again.leave()
		<-again.ended
	})
}

// Over a real connection: a call is in the next delta.
func TestLiveOverHTTP(t *testing.T) {
	r := newRig(t, usual)
	c := &Client{Base: r.url}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := c.OverviewLive(ctx, 10, func(o *Overview, d *OverviewDelta) error {
		if o != nil {
			if status := r.call(t, "search", "gpt-4o"); status != 200 {
				return fmt.Errorf("the call gets %d", status)
			}
			return nil
		}
		if i := slices.IndexFunc(d.Projects, func(row Row) bool { return row.Name == "search" && row.Minute.Passed == 1 }); i >= 0 {
			stop()
		}
		return nil
	})
	if ctx.Err() != context.Canceled {
		t.Errorf("the call is in no delta: %v", err)
	}
	testkit.Eventually(t, "nobody looks", func() bool {
		r.live.mu.Lock()
		defer r.live.mu.Unlock()
		return !r.live.running
	})
}
