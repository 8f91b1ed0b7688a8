package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestState(t *testing.T) {
	r := newRig(t, usual)
	if status := r.call(t, "search", "gpt-4o"); status != 200 {
		t.Fatal(status)
	}
	s := as[State](t, r.get(t, "/v1/state"))
	if s.Uptime <= 0 || s.Started.IsZero() {
		t.Errorf("started at %v, %v seconds ago", s.Started, s.Uptime)
	}
	var gpt *Model
	for i := range s.Models {
		if s.Models[i].Name == "gpt-4o" {
			gpt = &s.Models[i]
		}
	}
	if gpt == nil || gpt.Quota.MaxRPM != 100 || gpt.Usage.Used["max_rpm"] != 1 || gpt.Usage.Used["max_tpm"] == 0 || gpt.Usage.DayStart.IsZero() {
		t.Errorf("%+v", gpt)
	}
	var ids []string
	for _, p := range s.Projects {
		ids = append(ids, p.ID)
	}
	testkit.Equal(t, "the projects", []string{"search", "small"}, ids)
	s.Uptime, s.Started, s.Models, s.Projects, s.Listen, s.Admin = 0, time.Time{}, nil, nil, "", ""
	testkit.Equal(t, "the state", State{Version: "test", Ready: true, Store: "memory", Keys: "off", Mode: "enforce", OnStoreLoss: "deny"}, s)
	r.gateway.Drain()
	if s := as[State](t, r.get(t, "/v1/state")); s.Ready || !strings.Contains(s.Reason, "stop") {
		t.Errorf("it drains: %+v", s)
	}
}

func TestQuotas(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 404, "GET", "/v1/quotas/anthropic/claude-5", "")
	for _, path := range []string{"anthropic/claude-5", "anthropic%2Fclaude-5"} {
		m := as[Model](t, r.want(t, 200, "PUT", "/v1/quotas/"+path, `{"max_rpm": 7, "max_concurrent": 2}`))
		want := ratelimit.ModelQuota{MaxRPM: 7, MaxConcurrent: 2, Margin: 2 * time.Second}
		testkit.Equal(t, "the name", "anthropic/claude-5", m.Name)
		testkit.Equal(t, "the quota that is set", want, plainQuota(m))
		m = as[Model](t, r.want(t, 200, "GET", "/v1/quotas/"+path, ""))
		testkit.Equal(t, "the quota afterwards", want, plainQuota(m))
	}
	if m := as[Model](t, r.want(t, 200, "GET", "/v1/quotas/openai/gpt-6*", "")); m.Name != "openai/gpt-6*" || m.Quota.MaxRPM != 10 {
		t.Errorf("of a pattern: %+v", m)
	}
	m := as[Model](t, r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 1}`))
	testkit.Equal(t, "the quota that replaces another", ratelimit.ModelQuota{MaxRPM: 1, Margin: 2 * time.Second}, plainQuota(m))
	if first, second := r.call(t, "small", "gpt-4o"), r.call(t, "small", "gpt-4o"); first != 200 || second != 429 {
		t.Errorf("two calls of one a minute: %d, %d", first, second)
	}
}

// plainQuota returns a model's quota as the limiter has it.
func plainQuota(m Model) ratelimit.ModelQuota {
	q := m.Quota.ModelQuota
	q.Margin = time.Duration(*m.Quota.Margin)
	return q
}

// A quota that is set without a margin gets its provider's margin; a quota without limits
// has no margin. A quota that the API returns can be sent back unchanged.
func TestMarginOfAQuotaThatIsSet(t *testing.T) {
	r := newRig(t, strings.Replace(usual, "openai:", "openai:\n    margin: 3s", 1))
	for _, c := range []struct {
		model, body string
		want        time.Duration
	}{
		{"gpt-4o", `{"max_rpm": 5}`, 3 * time.Second},
		{"gpt-4o", `{"max_rpm": 5, "margin": null}`, 3 * time.Second},
		{"gpt-4o", `{"max_rpm": 5, "margin": 0.5}`, 500 * time.Millisecond},
		{"gpt-4o", `{"max_rpm": 5, "margin": "1.5s"}`, 1500 * time.Millisecond},
		{"gpt-4o", `{"max_rpm": 5, "margin": 0}`, 0},
		{"gpt-4o", `{}`, 0},
		{"openai/new", `{"max_tpm": 5}`, 3 * time.Second},
		{"anthropic/new", `{"max_tpm": 5}`, 2 * time.Second},
	} {
		path := "/v1/quotas/" + c.model
		m := as[Model](t, r.want(t, 200, "PUT", path+"?replace=true", c.body))
		if current, _ := r.gateway.Models().Quota(c.model); plainQuota(m).Margin != c.want || current.Margin != c.want {
			t.Errorf("%s %s: %+v, and the limiter has %+v; want a margin of %v", c.model, c.body, plainQuota(m), current, c.want)
		}
		text, _ := json.Marshal(m.Quota)
		again := as[Model](t, r.want(t, 200, "PUT", path, string(text)))
		testkit.Equal(t, "the quota that is sent back", plainQuota(m), plainQuota(again))
	}
	for body, want := range map[string]string{
		`{"max_rpm": 5, "margin": 31}`:    "margin of 31s: it must be from 0s to 30s",
		`{"max_rpm": 5, "margin": -1}`:    "not a duration",
		`{"max_rpm": 5, "margin": "two"}`: "not a duration",
		`{"max_rpm": 5, "margins": 2}`:    "auto, reserve, reserve_tokens, on_overrun, pace, burst, count, margin",
	} {
		if p := as[Problem](t, r.want(t, 400, "PUT", "/v1/quotas/gpt-4o", body)); !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s", body, p.Detail)
		}
	}
}

func TestPagesOfQuotas(t *testing.T) {
	r := newRig(t, usual)
	var got []string
	for query := "?limit=7"; query != ""; {
		page := as[ModelList](t, r.want(t, 200, "GET", "/v1/quotas"+query, ""))
		for _, m := range page.Quotas {
			got = append(got, m.Name)
		}
		query = ""
		if page.Next != "" {
			query = "?limit=7&after=" + url.QueryEscape(page.Next)
		}
	}
	want := slices.Sorted(maps.Keys(r.gateway.Models().Quotas()))
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 8 {
		t.Errorf("%d quotas: %s", len(got), diff)
	}
}

// A state lists no more than 1,000 projects, and says that there are more.
func TestStateIsBounded(t *testing.T) {
	r := newRig(t, usual)
	limits := map[string]project.Limit{}
	for i := range 1001 {
		limits[fmt.Sprintf("p%04d", i)] = project.Limit{}
	}
	if err := r.gateway.Projects().SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	if s := as[State](t, r.get(t, "/v1/state")); len(s.Projects) != 1000 || !s.More || s.Projects[999].ID != "p0999" {
		t.Errorf("%d projects, more: %v", len(s.Projects), s.More)
	}
}

// The state counts calls that wait.
func TestWaiting(t *testing.T) {
	r := newRig(t, usual)
	rl := r.gateway.Models()
	if err := rl.SetQuota("gpt-4o", ratelimit.ModelQuota{MaxConcurrent: 1}); err != nil {
		t.Fatal(err)
	}
	first, err := rl.Acquire(t.Context(), "gpt-4o", 1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		second, err := rl.Acquire(t.Context(), "gpt-4o", 1)
		if err == nil {
			second.Cancel()
		}
		done <- err
	}()
	for rl.Waiting("gpt-4o") == 0 {
		runtime.Gosched()
	}
	if s := as[State](t, r.get(t, "/v1/state")); s.Waiting != 1 {
		t.Errorf("%d wait", s.Waiting)
	}
	if m := as[Model](t, r.get(t, "/v1/quotas/gpt-4o")); m.Waiting != 1 || m.Usage.Used["max_concurrent"] != 1 {
		t.Errorf("%+v", m)
	}
	first.Cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestProjects(t *testing.T) {
	r := newRig(t, usual)
	p := as[Project](t, r.want(t, 200, "GET", "/v1/projects/search", ""))
	p.Windows = nil
	testkit.Equal(t, "a project of the configuration", Project{ID: "search", Limit: project.Limit{RequestsPerMinute: 60, TokensPerMonth: 1_000_000, Weight: 3}, Own: true, Mode: "enforce", MaxWait: usualWait, FitMin: 256, UnknownUsage: "reserved", FailedCalls: "free"}, p)
	p = as[Project](t, r.want(t, 200, "GET", "/v1/projects/a%2Fb", ""))
	testkit.Equal(t, "an unknown project", Project{ID: "a/b", Limit: project.Limit{Weight: 1}, Windows: []Window{}, Mode: "enforce", MaxWait: usualWait, FitMin: 256, UnknownUsage: "reserved", FailedCalls: "free"}, p)
	p = as[Project](t, r.want(t, 200, "PUT", "/v1/projects/a%2Fb", `{"requests_per_minute": 3, "tokens_per_day": 1000}`))
	want := Project{ID: "a/b", Limit: project.Limit{RequestsPerMinute: 3, TokensPerDay: 1000}, Own: true, Mode: "enforce", MaxWait: usualWait, FitMin: 256, UnknownUsage: "reserved", FailedCalls: "free", Windows: []Window{
		{"requests_per_minute", "requests", 3, 3, 60, 0, 0}, {"tokens_per_day", "tokens", 1000, 1000, 86400, 0, 0},
	}}
	testkit.Equal(t, "a project with a new limit", want, p)
	if status := r.call(t, "a/b", "gpt-4o"); status != 200 {
		t.Fatal(status)
	}
	p = as[Project](t, r.want(t, 200, "GET", "/v1/projects/a%2Fb", ""))
	if w := p.Windows[0]; w.Remaining != 2 || w.ResetAfter <= 0 || w.ResetAfter > 60 {
		t.Errorf("after a call: %+v", w)
	}
	r.want(t, 204, "POST", "/v1/reset", `{"project": "a/b"}`)
	p = as[Project](t, r.want(t, 200, "GET", "/v1/projects/a%2Fb", ""))
	testkit.Equal(t, "the project after a reset", want, p)
	p = as[Project](t, r.want(t, 200, "DELETE", "/v1/projects/a%2Fb", ""))
	testkit.Equal(t, "the project after its limit was unset", Project{ID: "a/b", Limit: project.Limit{Weight: 1}, Windows: []Window{}, Mode: "enforce", MaxWait: usualWait, FitMin: 256, UnknownUsage: "reserved", FailedCalls: "free"}, p)
}

// Shares are set and returned as strings, and are refused if they are more than everything. The state
// shows what projects use of their shares.
func TestShares(t *testing.T) {
	r := newRig(t, usual)
	p := as[Project](t, r.want(t, 200, "PUT", "/v1/projects/vip", `{"min_share": "12.5%", "max_share": "50%", "dedicated": true}`))
	testkit.Equal(t, "the limit", project.Limit{MinShare: 12.5, MaxShare: 50, Dedicated: true}, p.Limit)
	text, _ := json.Marshal(p.Limit)
	r.want(t, 200, "PUT", "/v1/projects/vip", string(text))
	if a := r.want(t, 400, "PUT", "/v1/projects/search", `{"min_share": "90%"}`); !strings.Contains(a.text, "add up to 102.5%, which must be 100% at most: 90% of search, 12.5% of vip") {
		t.Error(a.text)
	}
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 100, "reserve": "10%"}`)
	r.call(t, "search", "gpt-4o")
	r.settle(t)
	m := as[Model](t, r.get(t, "/v1/quotas/gpt-4o"))
	if m.Quota.Reserve != 10 || m.More || len(m.Shares) != 2 || m.Shares[0].Project != "search" || m.Shares[1].Project != "vip" {
		t.Fatalf("%+v", m)
	}
	testkit.Equal(t, "what is dedicated", []event.LimitShare{{Name: "max_rpm", Share: 12, Part: 12}}, m.Shares[1].Limits)
	if l := m.Shares[0].Limits[0]; l.Used != 1 || l.Share < 80 || l.Borrowed != 0 {
		t.Errorf("%+v", l)
	}
	if a := r.want(t, 200, "GET", "/metrics", ""); !strings.Contains(a.text, `ratelimit_project_share{dimension="max_rpm",model="gpt-4o",project="vip"} 12`) {
		t.Error("no metric has the share")
	}
}

// Projects with a limit, with a key, and of the last requests are listed.
func TestKnownProjects(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 200, "PUT", "/v1/projects/set", `{"requests_per_minute": 3}`)
	r.want(t, 201, "POST", "/v1/keys", `{"project": "keyed"}`)
	r.call(t, "calling", "gpt-4o")
	for _, path := range []string{"/nowhere", "/openai/v1/models"} { // these requests have no project
		req := httptest.NewRequest("GET", r.clients+path, nil)
		req.Header.Set("X-Project-ID", "not valid")
		resp, err := r.client.Transport.(*holding).RoundTripper.RoundTrip(req)
		if err != nil || resp.StatusCode < 400 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	r.settle(t)
	r.want(t, 200, "DELETE", "/v1/projects/search", "")
	for _, list := range [][]Project{as[ProjectList](t, r.get(t, "/v1/projects")).Projects, as[State](t, r.get(t, "/v1/state")).Projects} {
		var got []string
		for _, p := range list {
			got = append(got, p.ID)
		}
		slices.Sort(got) // the state has those first that need attention
		if diff := cmp.Diff([]string{"calling", "keyed", "search", "set", "small"}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReset(t *testing.T) {
	r := newRig(t, usual)
	used := func() int { return as[Model](t, r.get(t, "/v1/quotas/gpt-4o")).Usage.Used["max_rpm"] }
	r.call(t, "a", "gpt-4o")
	if used() != 1 {
		t.Fatal(used())
	}
	r.want(t, 204, "POST", "/v1/reset", `{"model": "gpt-4o"}`)
	if used() != 0 {
		t.Errorf("%d is used after a reset", used())
	}
	r.want(t, 404, "POST", "/v1/reset", `{"model": "unheard-of"}`)
}

func TestDecisions(t *testing.T) {
	r := newRig(t, usual)
	for range 3 {
		r.call(t, "small", "gpt-4o")
	}
	r.call(t, "search", "gpt-4o")
	all := as[DecisionList](t, r.get(t, "/v1/decisions"))
	if len(all.Decisions) != 4 {
		t.Fatalf("%+v", all)
	}
	first, third := all.Decisions[0], all.Decisions[2]
	if first.Project != "small" || first.Outcome != "passed" || first.Status != 200 || first.Took <= 0 || first.Upstream <= 0 || first.Model != "gpt-4o" {
		t.Errorf("%+v", first)
	}
	if third.Outcome != "denied" || third.Limit != "requests_per_minute" || third.Status != 429 {
		t.Errorf("%+v", third)
	}
	for query, want := range map[string][]uint64{
		"?limit=2":                           {3, 4}, // the latest two
		"?after=0&limit=2":                   {1, 2}, // the first two
		"?after=SECOND":                      {3, 4},
		"?after=FOURTH":                      nil,
		"?project=small":                     {1, 2, 3},
		"?project=small&limit=1":             {3},
		"?project=small&after=FIRST&limit=1": {2},
		"?project=nobody":                    nil,
		"?after=18446744073709551615":        nil,
	} {
		var got []uint64
		query = strings.NewReplacer("FIRST", fmt.Sprint(first.Seq), "SECOND", fmt.Sprint(all.Decisions[1].Seq), "FOURTH", fmt.Sprint(all.Next)).Replace(query)
		for i, n := range want {
			want[i] = all.Decisions[n-1].Seq
		}
		list := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions"+query, ""))
		for _, d := range list.Decisions {
			got = append(got, d.Seq)
		}
		testkit.Equal(t, query, want, got, cmpopts.EquateEmpty())
		if n := len(got); n > 0 && list.Next != got[n-1] {
			t.Errorf("%s: next is %d", query, list.Next)
		}
	}
}

func TestReload(t *testing.T) {
	var fault error
	asked := 0
	r := newRigWith(t, usual, Options{Reload: func(dryRun bool) ([]gateway.Changed, error) {
		if !dryRun {
			asked++
		}
		return nil, fault
	}})
	if got := as[Reloaded](t, r.want(t, 200, "POST", "/v1/reload", "")); len(got.Warnings) != 0 || asked != 1 {
		t.Errorf("%+v after %d", got, asked)
	}
	fault = errors.New("ratelimit: x.yaml:3:1: unknown field")
	if a := r.want(t, 422, "POST", "/v1/reload", ""); !strings.Contains(a.text, "x.yaml:3:1: unknown field") {
		t.Error(a.text)
	}
	newRig(t, usual).want(t, 409, "POST", "/v1/reload", "")
}

// Changes of a model and a project that the configuration names hold until a reload.
func TestReloadRestoresTheConfiguration(t *testing.T) {
	var r *rig
	r = newRigWith(t, usual, Options{Reload: func(dryRun bool) ([]gateway.Changed, error) {
		changed, err := r.gateway.Changes(r.gateway.Config())
		if err == nil && !dryRun {
			err = r.gateway.Reload(r.gateway.Config())
		}
		return changed, err
	}})
	quotas, limits := r.gateway.Models().Quotas(), r.gateway.Projects().Limits()
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 1}`)
	r.want(t, 200, "PUT", "/v1/projects/search?replace=true", `{"requests_per_day": 1}`)
	r.want(t, 200, "DELETE", "/v1/projects/small", "")
	r.want(t, 200, "PUT", "/v1/projects/new", `{"requests_per_day": 1}`)
	preview := as[Reloaded](t, r.want(t, 200, "POST", "/v1/reload?dry_run=true", ""))
	if q, _ := r.gateway.Models().Quota("gpt-4o"); q.MaxRPM != 1 {
		t.Errorf("the dry run has changed something: %+v", q)
	}
	reloaded := as[Reloaded](t, r.want(t, 200, "POST", "/v1/reload", ""))
	testkit.Equal(t, "the dry run and the reload", preview, reloaded)
	testkit.Equal(t, "what the reload takes back", []ReloadChange{
		{"model", "gpt-4o", []FieldChange{{"max_rpm", 1.0, 100.0}, {"max_tpm", nil, 100000.0}}, true},
		{"project", "search", []FieldChange{{"requests_per_day", 1.0, nil}, {"requests_per_minute", nil, 60.0}, {"tokens_per_month", nil, 1e6}, {"weight", nil, 3.0}}, true},
		{"project", "small", []FieldChange{{"requests_per_minute", nil, 2.0}}, true},
	}, reloaded.Changes)
	if again := as[Reloaded](t, r.want(t, 200, "POST", "/v1/reload", "")); len(again.Changes) != 0 {
		t.Errorf("a second reload changes %+v", again.Changes)
	}
	limits["new"] = project.Limit{RequestsPerDay: 1}
	if diff := cmp.Diff(quotas, r.gateway.Models().Quotas()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(limits, r.gateway.Projects().Limits()); diff != "" {
		t.Error(diff)
	}
}

func TestConfigHasNoSecrets(t *testing.T) {
	r := newRig(t, withToken(t)+"listen: 127.0.0.1:0\n")
	a := r.send(t, "GET", "/v1/config", "", "Authorization", "Bearer "+secretToken)
	if a.status != 200 || !strings.Contains(a.text, "[secret]") || strings.Contains(a.text, secretToken) {
		t.Errorf("%d %s", a.status, a.text)
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, usual)
	r.call(t, "search", "gpt-4o")
	a := r.want(t, 200, "GET", "/metrics", "")
	for _, name := range []string{"ratelimit_decisions_total", "ratelimit_model_used", "ratelimit_gateway_active", "go_goroutines"} {
		if !strings.Contains(a.text, "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	r := newRig(t, usual)
	if got := as[object](t, r.want(t, 200, "GET", "/openapi.json", "")); !cmp.Equal(got, document(t)) {
		t.Error("another document is served")
	}
}

func TestUnknownRoutes(t *testing.T) {
	r := newRig(t, usual)
	for _, c := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/v1", 404, ""},
		{"GET", "/v1/keys/abc/rotate/more", 404, ""},
		{"DELETE", "/v1/state", 405, "GET, HEAD"},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"POST", "/v1/projects/a", 405, "DELETE, GET, HEAD, PATCH, PUT"},
		{"GET", "/v1/reload", 405, "POST"},
		{"OPTIONS", "/v1/keys", 405, "GET, HEAD, POST"},
	} {
		a := r.send(t, c.method, c.path, "")
		if a.status != c.want || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow: %s: want %d, %s", c.method, c.path, a.status, a.header.Get("Allow"), c.want, c.allow)
		}
	}
}

// Invalid requests change nothing, and the answer says what is wrong.
func TestBadInput(t *testing.T) {
	r := newRig(t, usual)
	before := r.gateway.Models().Quotas()
	for _, c := range []struct {
		method, path, body string
		want               int
		says               string
	}{
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rmp": 1}`, 400, `unknown field \"max_rmp\": the fields are max_rpm, max_tpm,`},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": "1"}`, 400, "max_rpm is a string: it must be a whole number"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1.5}`, 400, "max_rpm is a number 1.5"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": -1}`, 400, "max_rpm of -1: it must be from 1"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1e300}`, 400, "max_rpm"},
		{"PUT", "/v1/quotas/gpt-4o", `{"reserve": "100%"}`, 400, "reserve of 100%: it must be from 0%, which is none, to less than 100%"},
		{"PUT", "/v1/quotas/gpt-4o", `{"day_resets_at": "noon"}`, 400, "day_resets_at"},
		{"PUT", "/v1/quotas/gpt-4o", `[]`, 400, "it must be a JSON object, with fields among max_rpm, max_tpm"},
		{"PUT", "/v1/quotas/gpt-4o", `null`, 400, "it must be a JSON object"},
		{"PUT", "/v1/quotas/gpt-4o", ` `, 400, "it must be a JSON object"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1} {}`, 400, "nothing after it"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1`, 400, "ends too soon"},
		{"PUT", "/v1/quotas/gpt-4o", `{nonsense}`, 400, "invalid character"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1}` + strings.Repeat(" ", maxBody), 413, "65536 bytes"},
		{"PUT", "/v1/quotas/", `{"max_rpm": 1}`, 400, "1 to 512 bytes"},
		{"PUT", "/v1/quotas/a%00b", `{"max_rpm": 1}`, 400, "no control characters"},
		{"PUT", "/v1/quotas/a%ffb", `{"max_rpm": 1}`, 400, "UTF-8"},
		{"PUT", "/v1/quotas/" + strings.Repeat("x", 513), `{"max_rpm": 1}`, 400, "1 to 512 bytes"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1, "max_tpm": 2, "max_rpm": 1}`, 400, "duplicate field max_rpm"},
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1, "MAX_rpm": 2}`, 400, "duplicate field MAX_rpm"},
		{"PUT", "/v1/quotas/gpt-4o", `{"auto": 1}`, 400, "auto is a number: it must be true or false"},
		{"PUT", "/v1/quotas/gpt-4o", `{"day_resets_at": 7}`, 400, "day_resets_at is a number: it must be a string"},
		{"PUT", "/v1/quotas/gpt-4oo", `{"max_rpm": 1}`, 404, `no call is charged to \"gpt-4oo\": it must be in the list of GET /v1/quotas`},
		{"PUT", "/v1/quotas/opnai/o9", `{"max_rpm": 1}`, 404, "no call is charged"},
		{"PUT", "/v1/projects/search", `{"requests_per_minute": -1}`, 400, `"requests_per_minute is -1: it must be from 0`},
		{"PUT", "/v1/projects/search", `{"max_concurrent": -1}`, 400, `"max_concurrent is -1`},
		{"PUT", "/v1/projects/search", `{"priority": 2000}`, 400, `"priority is 2000: it must be from -1000 to 1000`},
		{"PUT", "/v1/projects/search", `{"weight": 99999999}`, 400, `"weight is 99999999: it must be from 0`},
		{"PUT", "/v1/projects/search", `{"min_share": 20}`, 400, `min_share is a number: it must be a string such as \"20%\"`},
		{"PUT", "/v1/projects/search", `{"min_share": "120%"}`, 400, `percentage \"120%\": it must be from 0% to 100%`},
		{"PUT", "/v1/projects/search", `{"min_share": "20%", "max_share": "10%"}`, 400, `min_share is 20%: it must not be more than the max_share of 10%`},
		{"PUT", "/v1/projects/search", `{"dedicated": true}`, 400, `dedicated is set: it needs a min_share`},
		{"PUT", "/v1/projects/search", `{"requests_a_minute": 1}`, 400, "the fields are requests_per_minute,"},
		{"PUT", "/v1/projects/a%20b", `{}`, 400, "visible ASCII"},
		{"GET", "/v1/projects/%c3%bc", ``, 400, "visible ASCII"},
		{"POST", "/v1/reset", `{"project": "acme/.."}`, 400, `has the name \"..\"`},
		{"POST", "/v1/keys", `{"project": "."}`, 400, `has the name \".\"`},
		{"PUT", "/v1/projects/acme%2f%2e%2e", `{}`, 400, `has the name \"..\"`},
		{"DELETE", "/v1/projects/" + strings.Repeat("x", 129), ``, 400, "128"},
		{"POST", "/v1/reset", `{"modell": "gpt-4o"}`, 400, "the fields are model, project"},
		{"POST", "/v1/reset", `{}`, 400, "either model or project"},
		{"POST", "/v1/reset", `{"model": "gpt-4o", "project": "search"}`, 400, "either model or project"},
		{"POST", "/v1/reset", `{"project": "a b"}`, 400, "visible ASCII"},
		{"POST", "/v1/keys", `{}`, 400, "visible ASCII"},
		{"POST", "/v1/keys", `{"project": "search", "name": "a\u0000b"}`, 400, "control characters"},
		{"POST", "/v1/keys", `{"project": "search", "ttl": "soon"}`, 400, `it must be seconds as a number`},
		{"POST", "/v1/keys", `{"project": "search", "ttl": -5}`, 400, `it must be seconds as a number`},
		{"POST", "/v1/keys", `{"project": "search", "ttl": 1e30}`, 400, `it must be seconds as a number`},
		{"POST", "/v1/keys/aaaaaaaaaa/rotate", `{"grace": "1h"}`, 404, "no such key"},
		{"POST", "/v1/keys/aaaaaaaaaa/rotate", `{"grace": "-1h"}`, 400, "it must be seconds as a number"},
		{"DELETE", "/v1/keys/aaaaaaaaaa", ``, 404, "no such key"},
		{"GET", "/v1/keys?limit=0", ``, 400, "from 1 to 1000"},
		{"GET", "/v1/quotas?limit=1001", ``, 400, "from 1 to 1000"},
		{"GET", "/v1/projects?limit=ten", ``, 400, "from 1 to 1000"},
		{"GET", "/v1/decisions?after=-1", ``, 400, "a number from 0 on"},
		{"GET", "/v1/decisions?limit=1&limit=2", ``, 400, "it may be there once"},
		{"GET", "/v1/audit?project=search", ``, 400, `the parameters are [\"after\" \"limit\"]`},
		{"GET", "/v1/audit?after=%zz", ``, 400, "the query"},
	} {
		if a := r.send(t, c.method, c.path, c.body); a.status != c.want || !strings.Contains(a.text, c.says) {
			t.Errorf("%s %s %.80s: %d %s: want %d, %s", c.method, c.path, c.body, a.status, a.text, c.want, c.says)
		}
	}
	if a := r.send(t, "PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 1}`, "Content-Type", "text/plain"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("text: %d", a.status)
	}
	if diff := cmp.Diff(before, r.gateway.Models().Quotas()); diff != "" {
		t.Error(diff)
	}
	if got := r.gateway.Keys().List(); len(got) != 0 {
		t.Error(got)
	}
}

// A panic ends only its own request, and unlocks what the request had locked.
func TestPanic(t *testing.T) {
	r := newRigWith(t, usual, Options{Reload: func(bool) ([]gateway.Changed, error) { panic("a mistake") }})
	r.want(t, 500, "POST", "/v1/reload", "")
	if log := r.logged.String(); !strings.Contains(log, "has panicked") || strings.Contains(log, "a mistake") {
		t.Errorf("the log should say that it has, but not what may be of the request: %s", log)
	}
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 1}`)
}
