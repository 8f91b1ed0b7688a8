package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// follower reads a stream of events.
type follower struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
	end   context.CancelFunc
}

// follows begins to follow events. Headers are given as names and values.
func (r *rig) follows(t *testing.T, path string, headers ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	f := &follower{t, resp.Body, bufio.NewScanner(resp.Body), cancel}
	f.lines.Buffer(nil, 1<<20)
	for f.lines.Scan() && f.lines.Text() != ": "+following {
	}
	return f
}

// next returns the next event and its data; kind is empty at the end.
func (f *follower) next() (kind, data string) {
	for f.lines.Scan() {
		line := f.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			kind = name
		} else if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = text
		} else if line == "" && kind != "" {
			return kind, data
		}
	}
	return "", ""
}

// wantEvent returns the data of the next event, which has to be of a kind and valid by its schema.
func wantEvent[T any](t *testing.T, f *follower, kind, schema string) (value T) {
	t.Helper()
	got, data := f.next()
	if got != kind {
		t.Fatalf("the event is %q %s: want %s", got, data, kind)
	}
	var decoded any
	if err := json.Unmarshal([]byte(data), &decoded); err != nil {
		t.Fatal(err)
	}
	if err := (&validator{document(t)}).validate(decoded, object{"$ref": "#/components/schemas/" + schema}); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	return as[T](t, answer{text: data})
}

// lively is a gateway with whatever events are about.
const lively = `
state: memory
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1000}, once: {max_rpm: 1}}}
defaults: {max_wait: 0s}
thresholds: {at: [50%]}
projects:
  acme: {requests_per_day: 4}
`

// Decisions, thresholds, pauses, changes and reloads are streamed as they come.
func TestEvents(t *testing.T) {
	reloads := make(chan error, 1)
	var r *rig
	r = newRigWith(t, lively, Options{Reload: func(dryRun bool) ([]gateway.Changed, error) {
		if dryRun {
			return nil, nil
		}
		err := <-reloads
		if err != nil {
			r.gateway.ReloadFailed(err)
			return nil, err
		}
		return nil, r.gateway.Reload(gatewaytest.Config(t, strings.Replace(lively, "MOCK", "http://127.0.0.1:1", 1), "http://127.0.0.1:1"))
	}})
	all := r.follows(t, "/v1/events")
	_, id := r.asks(t, "once", "X-Project-ID", "acme/search")
	if d := wantEvent[Decision](t, all, "decision", "Decision"); d.ID != id || d.Project != "acme/search" || d.Outcome != gateway.Passed || d.Took <= 0 {
		t.Errorf("%+v", d)
	}
	r.asks(t, "once", "X-Project-ID", "acme/search")
	if d := wantEvent[Decision](t, all, "decision", "Decision"); d.Outcome != gateway.Denied || d.Owner != "once" {
		t.Errorf("%+v", d)
	}

	thresholds := r.follows(t, "/v1/events?kind=threshold&project=acme")
	r.asks(t, "gpt-4o", "X-Project-ID", "acme/search")
	if b := wantEvent[Threshold](t, thresholds, "threshold", "Threshold"); b.Owner != "acme" || b.Scope != "project" || b.Limit != "requests_per_day" || b.Percent != 50 || b.Used != 2 || b.Max != 4 || b.Unit != "requests" || b.ResetsAt.IsZero() {
		t.Errorf("%+v", b)
	}

	pauses := r.follows(t, "/v1/events?kind=pause,resume&model=gpt-4o")
	r.asks(t, "gpt-4o", "X-Mock", "status=429 retry-after=20s")
	if p := wantEvent[Pause](t, pauses, "pause", "Pause"); p.Model != "gpt-4o" || p.Provider != "openai" || p.Cause == "" || time.Until(p.Until) > 20*time.Second || time.Until(p.Until) < 0 {
		t.Errorf("%+v", p)
	}
	r.want(t, 204, "POST", "/v1/reset", `{"model": "gpt-4o"}`)
	if p := wantEvent[Pause](t, pauses, "resume", "Pause"); p.Model != "gpt-4o" || p.Paused <= 0 || !p.Until.IsZero() {
		t.Errorf("%+v", p)
	}

	changes := r.follows(t, "/v1/events?kind=change,reload")
	r.want(t, 200, "PATCH", "/v1/projects/acme", `{"requests_per_day": 50}`)
	if e := wantEvent[Entry](t, changes, "change", "Entry"); e.Subject != "acme" || e.Result != done || e.Seq == 0 {
		t.Errorf("%+v", e)
	}
	reloads <- nil
	r.want(t, 200, "POST", "/v1/reload", "")
	if e := wantEvent[ReloadEvent](t, changes, "reload", "ReloadEvent"); e.Result != done || e.Error != "" {
		t.Errorf("%+v", e)
	}
	wantEvent[Entry](t, changes, "change", "Entry")
	reloads <- fmt.Errorf("ratelimit: line 3 is wrong")
	r.want(t, 422, "POST", "/v1/reload", "")
	if e := wantEvent[ReloadEvent](t, changes, "reload", "ReloadEvent"); e.Result != failed || e.Error != "line 3 is wrong" {
		t.Errorf("%+v", e)
	}
}

// A client that follows events gets one when the store is lost, and one when it is back.
func TestEventsOfTheStore(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.New(t).Addr)
	r := newRig(t, strings.Replace(usual, "state: memory", "on_store_loss: allow\nstate: "+proxy.PatientURL(), 1))
	f := r.follows(t, "/v1/events?kind=store")
	proxy.Cut()
	r.call(t, "search", "gpt-4o")
	if s := wantEvent[StoreEvent](t, f, "store", "StoreEvent"); s.State != "lost" || s.Error == "" || s.OnStoreLoss != "allow" {
		t.Errorf("%+v", s)
	}
	proxy.Heal()
	if s := wantEvent[StoreEvent](t, f, "store", "StoreEvent"); s.State != "back" || s.Error != "" {
		t.Errorf("%+v", s)
	}
}

// Filters let only the events pass that are asked for, and bad ones are refused with what is allowed.
func TestEventFilters(t *testing.T) {
	for query, want := range map[string]string{
		"kind=decision":                    "a a/b ab",
		"kind=decision&project=a":          "a a/b",
		"outcome=denied":                   "ab",
		"kind=decision&model=once":         "a ab",
		"kind=decision,change&project=a/b": "a/b",
		"key=nobody&kind=decision":         "",
	} {
		t.Run(query, func(t *testing.T) {
			r := newRig(t, lively) // of its own: who competed for a model is remembered, also if the model is reset
			f := r.follows(t, "/v1/events?"+query)
			end := r.follows(t, "/v1/events?kind=decision&project=end")
			for _, c := range [][2]string{{"a", "once"}, {"a/b", "gpt-4o"}, {"ab", "once"}, {"end", "gpt-4o"}} {
				r.asks(t, c[1], "X-Project-ID", c[0])
			}
			end.next()
			var got []string
			for range strings.Fields(want) {
				_, data := f.next()
				got = append(got, as[Decision](t, answer{text: data}).Project)
			}
			testkit.Equal(t, "the projects", want, strings.Join(got, " "))
		})
	}
	r := newRig(t, lively)
	for query, says := range map[string]string{
		"kind=all":       "must be some of decision, threshold, pause, resume, change, reload, store",
		"outcome=happy":  "must be some of passed",
		"since=1h":       "unknown parameter",
		"kind=%0adata:1": "must be some of",
	} {
		if a := r.want(t, 400, "GET", "/v1/events?"+query, ""); !strings.Contains(a.text, says) {
			t.Errorf("%s: %s", query, a.text)
		}
	}
}

// A follower that does not read delays nobody. Where events are missing, it gets their number, and events that are not
// decisions have room beside those.
func TestSlowFollower(t *testing.T) {
	a, g := new(Admin), new(gateway.Gateway)
	f := g.Follow(func(*gateway.Event) bool { return true })
	defer f.Close()
	publish := func(seq uint64) {
		g.Publish(&gateway.Event{Kind: gateway.EventDecision, Record: &gateway.Record{Seq: seq}})
	}
	for i := range uint64(1500) {
		publish(i + 1)
	}
	g.Publish(&gateway.Event{Kind: gateway.EventReload})
	seen := uint64(0) // the number of the last decision that has come, or is missing
	others := 0
	read := func(most int) {
		t.Helper()
		for _, e := range a.readEvents(f, most) {
			switch e.Kind {
			case eventMissed:
				seen += as[Missed](t, answer{text: string(e.Data)}).Count
			case "decision":
				if seen++; as[Decision](t, answer{text: string(e.Data)}).Seq != seen {
					t.Fatalf("%s comes in place of the decision %d", e.Data, seen)
				}
			default:
				others++
			}
		}
	}
	read(1000)
	if seen != 1000 || others != 0 {
		t.Errorf("%d decisions and %d other events", seen, others)
	}
	publish(1501)
	read(1000)
	if seen != 1501 || others != 1 {
		t.Errorf("%d decisions and %d other events", seen, others)
	}
}

// A client gets eventsEach events a second at most, however many calls the gateway serves.
func TestEventsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := new(Admin), new(gateway.Gateway)
		f := g.Follow(func(*gateway.Event) bool { return true })
		got := httptest.NewRecorder()
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.follow(ctx, f, &feed{w: got, control: http.NewResponseController(got)}) }()
		const length = 20
		for range length * 1000 {
			time.Sleep(time.Millisecond)
			for range 20 {
				g.Publish(&gateway.Event{Kind: gateway.EventDecision, Record: &gateway.Record{}})
			}
		}
		end()
		<-ended
		if n := strings.Count(got.Body.String(), "event: decision\n"); n < length*eventsEach*9/10 || n > length*eventsEach+eventBatch {
			t.Errorf("%d events in %d seconds", n, length)
		}
	})
}

// Followers that leave are forgotten, and many can follow at a time.
func TestManyFollowers(t *testing.T) {
	r := newRig(t, lively)
	var all []*follower
	for range 100 {
		all = append(all, r.follows(t, "/v1/events?kind=decision"))
	}
	for _, f := range all[:50] {
		f.end()
	}
	_, id := r.asks(t, "gpt-4o")
	for _, f := range all[50:] {
		if d := wantEvent[Decision](t, f, "decision", "Decision"); d.ID != id {
			t.Errorf("%+v", d)
		}
	}
	testkit.Eventually(t, "half of them are left", func() bool { return r.gateway.Followers() == 50 })
}

// A stream ends when the server stops, and when the client may not see it any more.
func TestStreamsEnd(t *testing.T) {
	t.Setenv("TEST_ADMIN_TOKEN", strings.Repeat("a", 40))
	withToken := lively + "admin: {token: {env: TEST_ADMIN_TOKEN}}\n"
	r := newRig(t, withToken)
	bearer := []string{"Authorization", "Bearer " + strings.Repeat("a", 40)}
	if a := r.send(t, "GET", "/v1/events", ""); a.status != 401 {
		t.Errorf("without a token: %d", a.status)
	}
	f := r.follows(t, "/v1/events", bearer...)
	t.Setenv("TEST_ADMIN_TOKEN", strings.Repeat("b", 40))
	if err := r.gateway.Reload(gatewaytest.Config(t, withToken, "http://127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	wantEvent[ReloadEvent](t, f, "reload", "ReloadEvent")
	if kind, data := f.next(); kind != "" {
		t.Errorf("after the token has changed: %s %s", kind, data)
	}
	f = r.follows(t, "/v1/events", "Authorization", "Bearer "+strings.Repeat("b", 40))
	r.EndStreams()
	if kind, data := f.next(); kind != "" {
		t.Errorf("after the server has stopped: %s %s", kind, data)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, r.url+"/v1/events", nil)
	req.Header.Set("Authorization", "Bearer "+strings.Repeat("b", 40))
	if resp, err := http.DefaultTransport.RoundTrip(req); err != nil || resp.StatusCode != 200 { // which has no body, so it is no stream
		t.Errorf("HEAD: %v %v", resp, err)
	}
}
