package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
)

// Users and runs that clients invent are counted on their own up to a number, and together beyond it. Those that are in
// use go on to be counted, those that somebody has named always are, and names whose counters are full again make room.
func TestInventedUsersAndRunsAreBounded(t *testing.T) {
	const yaml = `
defaults: {max_wait: 0s}
users: {header: X-User-ID}
runs: {calls: 2}
projects:
  acme: {requests_per_day: 10000}
  acme/*: {requests_per_day: 2}
  acme/named: {requests_per_day: 3}
  free: {}
providers: {openai: {base_url: MOCK}}
`
	for header, project := range map[string]string{"X-User-ID": "acme", "X-Run-ID": "free"} {
		t.Run(header, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := New(gatewaytest.Config(t, yaml, "http://127.0.0.1:1"), Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				g.users.most, g.runs.most = 10, 10
				for _, to := range g.setup.Load().upstreams["openai"].deployments {
					to.transport = new(door)
				}
				passes := func(name string, calls int) (n int) {
					for range calls {
						r := httptest.NewRequest("POST", "http://127.0.0.1"+chat, strings.NewReader(hello))
						r.Header.Set("X-Project-ID", project)
						r.Header.Set(header, name)
						w := httptest.NewRecorder()
						g.ServeHTTP(w, r)
						if w.Code == 200 {
							n++
						} else if w.Code != 429 && w.Code != 402 { // the total of a run
							t.Errorf("%s: %d %s", name, w.Code, w.Body)
						}
					}
					return n
				}
				invented := 0
				for i := range 30 {
					n := passes(fmt.Sprint("invented", i), 1)
					if invented += n; i < 10 && n != 1 {
						t.Errorf("the name %d is denied", i)
					}
				}
				if invented != 10+2 {
					t.Errorf("%d calls of 30 names pass: want 10 of the first ones, and 2 of all others", invented)
				}
				if n := passes("invented3", 5); n != 1 {
					t.Errorf("a name in use has %d more calls: want 1", n)
				}
				if g.users.total+g.runs.total != 10 {
					t.Errorf("%d users and %d runs are remembered: want 10", g.users.total, g.runs.total)
				}
				if header == "X-User-ID" {
					if n := passes("named", 5); n != 3 {
						t.Errorf("a user with a limit of its own has %d calls: want 3", n)
					}
					if err := g.Controls().SetProject(t.Context(), "acme/paused", control.Project{Paused: true}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(26 * time.Hour) // the shared counter is full again, and the ten names are still in use
					if n := passes("paused", 1); n != 0 {
						t.Error("a paused user passes among the others")
					}
				}
				time.Sleep(30 * time.Hour)
				if n := passes("later", 5); n != 2 {
					t.Errorf("a new name has %d calls when all others are full again: want 2", n)
				}
				if last := g.Recent("", 0, maxRecent); last[len(last)-1].User+last[len(last)-1].Run != "later" {
					t.Errorf("%+v", last[len(last)-1])
				}
			})
		})
	}
}

// When all projects together have as many names as may be, names that are not in use any more make room, whichever
// project they are of.
func TestNamesOfAllProjectsMakeRoom(t *testing.T) {
	n := newNamesInUse()
	n.most, n.mostAll = 10, 40
	stay := func(string, string) time.Duration { return time.Hour }
	at := func(project, hours int) bool {
		name, now := fmt.Sprint("run ", hours), int64(hours)*int64(time.Hour)
		counts := n.counts(fmt.Sprint(project), name, now, stay)
		if counts {
			n.use(fmt.Sprint(project), name, now)
		}
		return counts
	}
	for project := range 40 {
		if !at(project, 1) {
			t.Fatalf("no room for the first name of project %d", project)
		}
	}
	if at(40, 2) {
		t.Error("there is room for a name while all others are in use")
	}
	if !at(40, 4) || !at(0, 4) {
		t.Error("there is no room for a name when all others have gone")
	}
	if n.total > 40 || len(n.of) > 40 {
		t.Errorf("%d names of %d projects are remembered: want 40 at most", n.total, len(n.of))
	}
}
