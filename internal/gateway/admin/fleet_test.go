package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// meets waits until the gateways of rigs know each other.
func (r *rig) meets(t testing.TB, others ...*rig) {
	t.Helper()
	all := append([]*rig{r}, others...)
	testkit.Eventually(t, "the gateways know each other", func() bool {
		return !slices.ContainsFunc(all, func(each *rig) bool { return len(each.fleet.Others()) != len(all)-1 })
	})
}

// newFleet starts gateways on one Redis, and a proxy in front of their admin APIs that asks them in turn. The rig that it
// returns beside them asks the proxy.
func newFleet(t testing.TB, n int, yaml string) (all []*rig, one *rig) {
	t.Helper()
	yaml = strings.Replace(yaml, "state: memory", "state: "+redistest.New(t).PatientURL(), 1)
	var targets []*url.URL
	for i := range n {
		r := newRigNamed(t, yaml, Options{}, fmt.Sprintf("gw%d", i+1))
		target, err := url.Parse(r.url)
		if err != nil {
			t.Fatal(err)
		}
		all, targets = append(all, r), append(targets, target)
	}
	all[0].meets(t, all[1:]...)
	var turn atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			host := p.In.Host
			p.SetURL(targets[int(turn.Add(1))%n])
			p.Out.Host = host
		},
	})
	t.Cleanup(proxy.Close)
	one = &rig{url: proxy.URL, client: all[0].client}
	return all, one
}

// Whichever gateway of a fleet is asked, its answers are of all of them.
func TestFleetIsOne(t *testing.T) {
	all, one := newFleet(t, 3, usual)
	for i, r := range all {
		for range i + 1 {
			r.call(t, "search", "gpt-4o")
		}
	}
	for range 2 * len(all) { // each of them is asked twice
		o := as[Overview](t, one.want(t, 200, "GET", "/v1/overview", ""))
		if o.Totals.Passed != 6 || row(t, o.Projects, "search").Minute.Passed != 6 || row(t, o.Models, "gpt-4o").Minute.Passed != 6 || len(o.Gateways) != 3 {
			t.Fatalf("the overview: %+v", o)
		}
		m := as[Matrix](t, one.want(t, 200, "GET", "/v1/matrix", ""))
		if len(m.Cells) != 1 || m.Cells[0].Calls != 6 || len(m.Gateways) != 3 {
			t.Fatalf("the matrix: %+v", m)
		}
		h := as[History](t, one.want(t, 200, "GET", "/v1/history?project=search", ""))
		passed := int64(0)
		for _, p := range h.Points {
			passed += p.Passed
		}
		if passed != 6 || len(h.Points) < 60 {
			t.Fatalf("the history: %+v", h)
		}
		list := as[DecisionList](t, one.want(t, 200, "GET", "/v1/decisions", ""))
		by := map[string]int{}
		for i, d := range list.Decisions {
			by[d.Gateway]++
			if i > 0 && d.Seq < list.Decisions[i-1].Seq {
				t.Errorf("%d comes after %d", d.Seq, list.Decisions[i-1].Seq)
			}
			e := as[Explanation](t, one.want(t, 200, "GET", "/v1/decisions/"+d.ID, ""))
			if e.ID != d.ID || e.Decision.Gateway != d.Gateway || len(e.Limits) == 0 {
				t.Errorf("the explanation of %s: %+v", d.ID, e)
			}
		}
		testkit.Equal(t, "who has decided", map[string]int{"gw1": 1, "gw2": 2, "gw3": 3}, by)
	}
	if a := one.want(t, 404, "GET", "/v1/decisions/gw_nobody_1", ""); !strings.Contains(a.text, "there is no request") {
		t.Error(a.text)
	}
	got := []uint64{}
	for after := uint64(0); ; {
		page := as[DecisionList](t, one.want(t, 200, "GET", fmt.Sprintf("/v1/decisions?limit=2&after=%d", after), ""))
		if len(page.Decisions) == 0 {
			break
		}
		for _, d := range page.Decisions {
			got = append(got, d.Seq)
		}
		after = page.Next
	}
	if len(got) != 6 || !slices.IsSorted(got) {
		t.Errorf("the pages: %v", got)
	}
}

// Who follows one gateway gets the events of all, and each says where it was. Those of other projects than the one that
// is asked for, as whoever is bound to it does, stay where they are.
func TestEventsOfAFleet(t *testing.T) {
	all, _ := newFleet(t, 3, usual)
	events := all[0].follows(t, "/v1/events?kind=decision,change&project=search")
	for _, at := range []int{1, 0} {
		all[at].call(t, "another", "gpt-4o")
		all[at].call(t, "search", "gpt-4o")
		if d := wantEvent[Decision](t, events, "decision", "Decision"); d.Gateway != fmt.Sprintf("gw%d", at+1) || d.Project != "search" {
			t.Errorf("an event of gw%d: %+v", at+1, d)
		}
	}
	all[2].want(t, 200, "PATCH", "/v1/projects/search", `{"weight": 4}`)
	if e := wantEvent[Entry](t, events, "change", "Entry"); e.Gateway != "gw3" || e.Subject != "search" {
		t.Errorf("a change at gw3: %+v", e)
	}
}

// A gateway that has as many followers of other gateways as it takes says so, and is not taken for one that does not
// answer.
func TestFullGatewayIsNamed(t *testing.T) {
	all, _ := newFleet(t, 2, usual)
	for i := range maxRemotes {
		if _, err := all[1].ownEvents(url.Values{"id": {fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	e := wantEvent[Silent](t, all[0].follows(t, "/v1/events"), "silent", "Silent")
	if len(e.Gateways) != 0 || !slices.Equal(e.Full, []string{"gw2"}) {
		t.Errorf("%+v", e)
	}
}

// A gateway that does not answer is named, and what the others know is shown.
func TestSilentGatewayIsNamed(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	start := func(name, address string) *rig {
		return newRigNamed(t, strings.Replace(usual, "state: memory", "state: "+address, 1), Options{}, name)
	}
	one, cut := start("one", server.PatientURL()), start("cut", proxy.PatientURL())
	one.meets(t, cut)
	one.call(t, "search", "gpt-4o")
	cut.call(t, "search", "gpt-4o")
	proxy.Cut()
	list := as[DecisionList](t, one.want(t, 200, "GET", "/v1/decisions", ""))
	if len(list.Decisions) != 1 || !slices.Equal(list.Silent, []string{"cut"}) || !slices.Equal(list.Gateways, []string{"one"}) {
		t.Errorf("%+v", list)
	}
	if a := one.want(t, 404, "GET", "/v1/decisions/nobody", ""); !strings.Contains(a.text, "cut did not answer") {
		t.Error(a.text)
	}
	if o := as[Overview](t, one.want(t, 200, "GET", "/v1/overview", "")); !slices.Equal(o.Silent, []string{"cut"}) || o.Totals.Passed != 1 {
		t.Errorf("%+v", o)
	}
	if e := wantEvent[Silent](t, one.follows(t, "/v1/events"), "silent", "Silent"); !slices.Equal(e.Gateways, []string{"cut"}) {
		t.Errorf("%+v", e)
	}
}

// A gateway that waits for a limit at one gateway of a fleet is in the list of every other.
func TestWaitingOfAFleet(t *testing.T) {
	all, one := newFleet(t, 2, strings.NewReplacer("max_rpm: 100", "max_rpm: 1", "search: {", "search: {max_wait: 5m, ").Replace(usual))
	all[0].call(t, "search", "gpt-4o")
	all[0].call(t, "small", "gpt-4o") // is denied, and shares the model
	answered := make(chan int, 1)
	go func() { answered <- all[1].callAsync("search", "gpt-4o") }()
	testkit.Eventually(t, "the call waits", func() bool { return all[1].gateway.Models().Waiting("gpt-4o") == 1 })
	for range 4 {
		list := as[WaitingList](t, one.want(t, 200, "GET", "/v1/waiting", ""))
		if len(list.Waiting) != 1 || list.Waiting[0].Gateway != "gw2" {
			t.Errorf("%+v", list)
		}
		s := as[State](t, one.want(t, 200, "GET", "/v1/state", ""))
		if s.Waiting != 1 || s.Active != 1 {
			t.Errorf("%d wait, %d are active", s.Waiting, s.Active)
		}
		for _, m := range s.Models {
			for _, share := range m.Shares {
				if want := map[string]int{"search": 1}[share.Project]; share.Waiting != want {
					t.Errorf("%d calls of %q wait for its share of %q: want %d", share.Waiting, share.Project, m.Name, want)
				}
			}
		}
		if o := as[Overview](t, one.want(t, 200, "GET", "/v1/overview", "")); o.Totals.Waiting != 1 || row(t, o.Projects, "search").Waiting != 1 {
			t.Errorf("%+v", o.Totals)
		}
	}
	all[0].want(t, 204, "POST", "/v1/reset", `{"model": "gpt-4o"}`)
	if status := <-answered; status != 200 {
		t.Errorf("the call: %d", status)
	}
}

// callAsync calls a model from another goroutine than the test's, and returns the status: 0 for none.
func (r *rig) callAsync(project, model string) int {
	req, err := http.NewRequest(http.MethodPost, r.clients+"/openai/v1/chat/completions",
		strings.NewReader(fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`, model)))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Project-ID", project)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// The audit log is of the fleet, in order, and says which gateway has made a change. It outlives the gateways.
func TestAuditOfAFleet(t *testing.T) {
	all, one := newFleet(t, 2, usual)
	for i := range 4 {
		one.want(t, 200, "PATCH", "/v1/projects/search", fmt.Sprintf(`{"requests_per_minute": %d}`, 100+i))
	}
	for range 2 {
		list := as[AuditList](t, one.want(t, 200, "GET", "/v1/audit", "")).Entries
		by := map[string]int{}
		for i, e := range list {
			by[e.Gateway]++
			if i > 0 && e.Seq < list[i-1].Seq {
				t.Errorf("entry %d: %d comes after %d", i, e.Seq, list[i-1].Seq)
			}
		}
		testkit.Equal(t, "who has made the changes", map[string]int{"gw1": 4, "gw2": 4}, by)
	}
	later := newRigNamed(t, all[0].yaml, Options{}, "later")
	if list := as[AuditList](t, later.get(t, "/v1/audit?limit=3")); len(list.Entries) != 3 || list.Entries[2].Result != done {
		t.Errorf("%+v", list)
	}
}
