package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// callAs calls a model through the gateway with headers, given as names and values, and returns the status.
// It does not wait until the call is recorded.
func (r *rig) callAs(t testing.TB, model string, headers ...string) int {
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 500}`, model)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.clients+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// row returns the row of a name.
func row(t testing.TB, rows []Row, name string) Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("%s is not among %v", name, names(rows))
	}
	return rows[i]
}

// dimension returns a dimension of a row.
func (r *Row) dimension(t testing.TB, name string) Dimension {
	t.Helper()
	i := slices.IndexFunc(r.Dimensions, func(d Dimension) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("%s has no dimension %s: %+v", r.Name, name, r.Dimensions)
	}
	return r.Dimensions[i]
}

// The overview says what is used of the limits of models and projects, and what became of calls.
func TestOverview(t *testing.T) {
	r := newRig(t, usual)
	for range 3 {
		if status := r.call(t, "search", "gpt-4o"); status != 200 {
			t.Fatalf("a call gets %d", status)
		}
		r.call(t, "small", "gpt-4o") // of which the third is denied
	}
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview?projects=10", ""))
	if o.Totals != (Totals{Passed: 5, Denied: 1}) || o.ProjectCount != 2 || o.ModelCount != 2 || o.Mode != "enforce" || o.Version != "test" {
		t.Errorf("%+v", o)
	}
	testkit.Equal(t, "the order", []string{"small", "search"}, names(o.Projects))
	small := o.Projects[0]
	if small.Pressure != 1 || small.Closest != "requests_per_minute" || small.Minute.Passed != 2 || small.Minute.Denied != 1 || small.Minute.Tokens == 0 {
		t.Errorf("%+v", small)
	}
	testkit.Equal(t, "what has denied calls", []figures.Denials{{Limit: "requests_per_minute", Count: 1}}, small.DeniedBy)
	testkit.Equal(t, "its minute", Dimension{Name: "requests_per_minute", Setting: "requests_per_minute", Unit: "requests", Limit: 2, Used: 2}, small.dimension(t, "requests_per_minute"))
	if sum(small.Spark) != 2 || sum(small.SparkDenied) != 1 || len(small.Spark) != 15 || small.Actual == 0 || small.Estimated < small.Actual {
		t.Errorf("%+v", small)
	}
	search := o.Projects[1]
	if month := search.dimension(t, "tokens_per_month"); month.Setting != "tokens_per_month" || month.Used == 0 || time.Until(month.ResetsAt) < 29*24*time.Hour || search.Weight != 3 {
		t.Errorf("%+v", search)
	}
	model := row(t, o.Models, "gpt-4o")
	if rpm := model.dimension(t, "max_rpm"); rpm.Limit != 100 || rpm.Used != 5 || rpm.Remaining != 95 || rpm.Setting != "max_rpm" || model.Minute.Passed != 5 {
		t.Errorf("%+v", model)
	}
}

func sum(list []int64) (n int64) {
	for _, each := range list {
		n += each
	}
	return n
}

// A project's figures include those of the projects below it; templates are no projects; a
// project that only a key names has a row, and so has a user.
func TestOverviewOfATree(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100}}}
users: {header: X-User-ID}
projects:
  acme: {requests_per_day: 10}
  acme/*: {requests_per_day: 4}
`)
	r.callAs(t, "gpt-4o", "X-Project-ID", "acme/search", "X-User-ID", "alice")
	r.callAs(t, "gpt-4o", "X-Project-ID", "acme/search")
	r.callAs(t, "gpt-4o", "X-Project-ID", "acme")
	r.settle(t)
	r.want(t, 201, "POST", "/v1/keys", `{"project": "other"}`)
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	passed := map[string]int64{}
	for _, p := range o.Projects {
		passed[p.Name] = p.Minute.Passed
	}
	testkit.Equal(t, "the calls", map[string]int64{"acme": 3, "acme/search": 2, "acme/search/alice": 1, "other": 0}, passed)
	acme, search := row(t, o.Projects, "acme"), row(t, o.Projects, "acme/search")
	if acme.dimension(t, "requests_per_day").Used != 3 || search.dimension(t, "requests_per_day").Used != 2 || search.dimension(t, "requests_per_day").Limit != 4 {
		t.Errorf("%+v, %+v", acme.Dimensions, search.Dimensions)
	}
}

// Projects have their shares of a model's limits as dimensions, and the model what is lent in all.
func TestOverviewOfShares(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 200, "PATCH", "/v1/projects/search", `{"min_share": "20%"}`)
	r.call(t, "search", "gpt-4o")
	r.call(t, "small", "gpt-4o")
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	search, model := row(t, o.Projects, "search"), row(t, o.Models, "gpt-4o")
	share := search.dimension(t, "max_rpm_share")
	if share.Model != "gpt-4o" || share.Used != 1 || share.Limit <= 0 || share.Limit > 100 || share.Unit != "requests" || share.Setting != "" {
		t.Errorf("%+v", share)
	}
	var lent float64
	for _, p := range o.Projects {
		lent += p.dimension(t, "max_rpm_share").Lent
	}
	if got := model.dimension(t, "max_rpm").Lent; got != lent {
		t.Errorf("the model lends %v, its projects %v", got, lent)
	}
}

// What the provider says of its limits stands beside what the gateway has counted.
func TestOverviewHasTheProvidersWord(t *testing.T) {
	start := time.Now()
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{Now: func() time.Time { return start }, Limits: map[string]mockprovider.Limit{"gpt-4o": {Requests: 40, Tokens: 9000}}}))
	t.Cleanup(provider.Close)
	r := newRig(t, strings.ReplaceAll(usual, "MOCK", provider.URL))
	r.call(t, "search", "gpt-4o")
	r.call(t, "search", "gpt-4o")
	r.call(t, "search", "gpt-9") // which has no quota, and so nothing to compare with
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	said := row(t, o.Models, "gpt-4o").Provider
	if len(said) != 2 || said[0].Dimension != "max_rpm" || said[0].Limit != 40 || said[0].Remaining != 38 || said[0].UsedHere != 2 || said[0].At.Before(start.Truncate(0)) {
		t.Errorf("%+v", said)
	}
	if said[1].Dimension != "max_tpm" || said[1].Limit != 9000 || said[1].UsedHere == 0 {
		t.Errorf("%+v", said)
	}
	if other := row(t, o.Models, "openai/gpt-9"); other.Minute.Passed != 1 || other.Pressure != 0 || other.Provider != nil {
		t.Errorf("%+v", other)
	}
}

// A model that its provider throttles is paused, and says why and for how much longer.
func TestOverviewOfAPause(t *testing.T) {
	r := newRig(t, usual)
	r.callAs(t, "gpt-4o", "X-Project-ID", "small", "X-Mock", "status=429 retry-after=40s")
	r.settle(t)
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	model := row(t, o.Models, "gpt-4o")
	if p := model.Pause; p == nil || p.Reason != "rate limit" || p.Remaining <= 30 || p.Remaining > 40 || time.Until(p.Until) > 41*time.Second || model.Paused {
		t.Errorf("%+v", p)
	}
	if model.Minute.Failed != 1 || model.Minute.Passed != 1 {
		t.Errorf("%+v", model.Minute)
	}
}

// What an operator has paused says so, and so does what is below it.
func TestOverviewOfWhatAnOperatorHasPaused(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 200, "PUT", "/v1/projects/search%2Finner", `{"requests_per_day": 5}`)
	r.want(t, 200, "PATCH", "/v1/projects/search", `{"paused": true}`)
	r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"paused": true}`)
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	if !row(t, o.Projects, "search").Paused || !row(t, o.Projects, "search/inner").Paused || row(t, o.Projects, "small").Paused {
		t.Errorf("%+v", o.Projects)
	}
	if !row(t, o.Models, "gpt-4o").Paused || row(t, o.Models, "openai/gpt-6*").Paused {
		t.Errorf("%+v", o.Models)
	}
}

// Calls that wait are in the rows of their model, of their project and of those above it, in the totals
// and in the matrix.
func TestOverviewOfWaiting(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1}}}
projects:
  acme: {max_wait: 5m}
`)
	r.callAs(t, "gpt-4o", "X-Project-ID", "acme/search")
	waiting := make(chan int)
	go func() { waiting <- r.callAs(t, "gpt-4o", "X-Project-ID", "acme/search") }()
	var o Overview
	testkit.Eventually(t, "a call waits", func() bool {
		o = as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
		return o.Totals.Waiting == 1 && row(t, o.Models, "gpt-4o").LongestWait > 0
	})
	for _, row := range []Row{row(t, o.Models, "gpt-4o"), row(t, o.Projects, "acme"), row(t, o.Projects, "acme/search")} {
		if row.Waiting != 1 || row.LongestWait <= 0 {
			t.Errorf("%s: %d wait, for %v", row.Name, row.Waiting, row.LongestWait)
		}
	}
	m := as[Matrix](t, r.want(t, 200, "GET", "/v1/matrix", ""))
	if len(m.Cells) != 1 || m.Cells[0].Waiting != 1 || m.Cells[0].Calls != 1 {
		t.Errorf("%+v", m)
	}
	r.want(t, 204, "POST", "/v1/reset", `{"model": "gpt-4o"}`)
	if status := <-waiting; status != 200 {
		t.Errorf("the call that waited gets %d", status)
	}
	r.settle(t)
	h := as[History](t, r.want(t, 200, "GET", "/v1/history?project=acme", ""))
	if n := len(h.Points); n != 60 || h.Points[n-1].Waited+h.Points[n-2].Waited != 1 {
		t.Errorf("%d points: %+v", n, h.Points[n-2:])
	}
}

// Any of many projects can be found, in any order, a part at a time.
func TestManyProjects(t *testing.T) {
	r := newRig(t, usual)
	limits := map[string]project.Limit{}
	for i := range 3000 {
		limits[fmt.Sprintf("team%d/p%04d", i%10, i)] = project.Limit{RequestsPerMinute: 100}
	}
	if err := r.gateway.Projects().SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		id := fmt.Sprintf("team%d/p%04d", i%10, i)
		for range i + 1 {
			r.gateway.Projects().Spend(t.Context(), project.Call{Project: id})
		}
		for range 40 - i {
			r.gateway.Figures().Count(figures.Name{Project: id}, &figures.Call{Denied: i%2 == 1})
		}
	}
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview?projects=10", ""))
	if o.ProjectCount != 3012 || len(o.Projects) != 10 || o.Projects[0].Name != "team1" || o.Projects[0].Harm != "blocked" { // with the ten teams that were called
		t.Errorf("%d projects, the first is %+v", o.ProjectCount, o.Projects[0])
	}
	for _, c := range []struct {
		query string
		total int
		first string
		count int
	}{
		{"", 3012, "team1", 100},
		{"sort=harm&limit=1", 3012, "team1", 1},
		{"search=P00", 100, "team1/p0001", 100},
		{"sort=pressure&limit=3", 3012, "team9/p0029", 3},
		{"sort=pressure&offset=29&limit=1", 3012, "team0/p0000", 1},
		{"sort=pressure&search=P00", 100, "team9/p0029", 100},
		{"search=p00&sort=name&offset=98", 100, "team9/p0089", 2},
		{"sort=name&limit=2", 3012, "search", 2},
		{"sort=calls&limit=1&search=%2Fp", 3000, "team0/p0000", 1},
		{"sort=denied&limit=1&search=%2Fp", 3000, "team1/p0001", 1},
		{"sort=waiting&limit=1", 3012, "team1", 1},
		{"search=nobody", 0, "", 0},
		{"offset=99999999", 3012, "", 0},
	} {
		p := as[ProjectRows](t, r.want(t, 200, "GET", "/v1/overview/projects?"+c.query, ""))
		first := ""
		if len(p.Projects) > 0 {
			first = p.Projects[0].Name
		}
		if p.Total != c.total || len(p.Projects) != c.count || first != c.first {
			t.Errorf("%s: %d of %d, the first is %q: want %+v", c.query, len(p.Projects), p.Total, first, c)
		}
	}
}

// Who watches many projects gets the change of any of them, those that are not shown within a few looks.
func TestWatchingManyProjects(t *testing.T) {
	r := newRig(t, usual)
	limits := map[string]project.Limit{}
	for i := range 2000 {
		limits[fmt.Sprintf("p%04d", i)] = project.Limit{RequestsPerMinute: 100}
	}
	if err := r.gateway.Projects().SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	r.lookout.look(t.Context(), false)
	for i := range 2000 {
		r.gateway.Projects().Spend(t.Context(), project.Call{Project: fmt.Sprintf("p%04d", i)})
	}
	for range 1 + 2002/askedEach {
		r.lookout.look(t.Context(), true)
		if n := len(r.lookout.due(true)); n > askedEach+200+1 {
			t.Errorf("a look asks %d projects", n)
		}
	}
	for _, p := range r.lookout.projects.list {
		if p.name[0] == 'p' && p.pressure == 0 {
			t.Fatalf("%s was not asked", p.name)
		}
	}
}

func TestBadParametersOfTheOverview(t *testing.T) {
	r := newRig(t, usual)
	for path, want := range map[string]string{
		"/v1/overview?projects=11":              "must be one of [10 25 50 100 200]",
		"/v1/overview?projects=":                "must be one of [10 25 50 100 200]",
		"/v1/overview?project=50":               "the parameters are",
		"/v1/overview?projects=10&projects=25":  "it may be there once",
		"/v1/overview/live?projects=-1":         "must be one of [10 25 50 100 200]",
		"/v1/overview/live?since=1h":            "the parameters are",
		"/v1/overview/projects?sort=size":       "must be one of harm, pressure, name, waiting, denied, calls",
		"/v1/overview/projects?offset=-1":       "must be a number from 0 on",
		"/v1/overview/projects?offset=x":        "must be a number from 0 on",
		"/v1/overview/projects?limit=1001":      "must be from 1 to 1000",
		"/v1/matrix?limit=0":                    "must be from 1 to 1000",
		"/v1/matrix?project=a":                  "the parameters are",
		"/v1/history?by=week":                   "must be one of minute, hour, day",
		"/v1/history?since=yesterday":           "it must be",
		"/v1/history?by=hour&until=tomorrow":    "it must be",
		"/v1/history?by=hour&since=2000-01-01":  "ask for less time, or by day",
		"/v1/history?by=day&since=1h&until=2h":  "until must be later than since",
		"/v1/history?users=a":                   "the parameters are",
		"/v1/history?project=a&since=1h&by=%zz": "the query",
	} {
		if a := r.want(t, 400, "GET", path, ""); !strings.Contains(a.text, want) {
			t.Errorf("%s: %s", path, a.text)
		}
	}
}
