package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// shadowRig has limits of ten calls, of a model and of projects, and calls that do not wait.
const shadowRig = `
providers:
  openai: {base_url: MOCK, models: {wide: {max_rpm: 100000}, tight: {max_rpm: 10}, tried: {max_rpm: 10, mode: shadow}}}
projects:
  tried: {requests_per_minute: 10, mode: shadow}
  acme: {requests_per_minute: 10}
  acme/search: {requests_per_minute: 5}
defaults: {max_wait: 0s}
`

// rush makes n calls at once, and returns the answers by their status, and how many of them say that a
// limit would have denied them.
func (r *rig) rush(t *testing.T, n int, project, model string) (statuses map[int]int, told int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	statuses = map[int]int{}
	for range n {
		wg.Go(func() {
			a := r.post(t, chat, fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hello"}]}`, model), "X-Project-ID", project)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
			if said := a.header.Get("X-Ratelimit-Shadow"); strings.HasPrefix(said, "would deny; limit=") {
				told++
			} else if said != "" {
				t.Error(said)
			}
		})
	}
	wg.Wait()
	r.settled(t)
	return statuses, told
}

// A limit in shadow lets all of 300 calls at once pass that it would have let ten of, and says so of the
// others. What is enforced holds exactly, also for calls of a project in shadow.
func TestShadowOfTheFile(t *testing.T) {
	r := newRig(t, shadowRig, mockprovider.Config{})
	n := testkit.Rounds(60, 300)
	for _, c := range []struct {
		project, model string
		want           map[int]int
		told           int
	}{
		{"tried", "wide", map[int]int{200: n}, n - 10},
		{"tried/inner", "wide", map[int]int{200: n}, n}, // it is above the limit by now
		{"other", "tried", map[int]int{200: n}, n - 10},
		{"tried", "tight", map[int]int{200: 10, 429: n - 10}, 10},
		{"acme", "wide", map[int]int{200: 10, 429: n - 10}, 0},
	} {
		statuses, told := r.rush(t, n, c.project, c.model)
		testkit.Equal(t, c.project+" at "+c.model, c.want, statuses)
		testkit.Equal(t, "told of "+c.project+" at "+c.model, c.told, told)
	}
}

// The log, the metrics, the decisions and a header say what a limit in shadow would have done.
func TestShadowIsTold(t *testing.T) {
	var out bytes.Buffer
	r := newRig(t, shadowRig+"log: {sample: 1000}\n", mockprovider.Config{})
	r.access.log = slog.New(slog.NewJSONHandler(&out, nil))
	r.rush(t, 12, "tried/alice", "wide")
	a := r.post(t, chat, `{"model":"wide","messages":[{"role":"user","content":"Hello"}]}`, "X-Project-ID", "tried")
	testkit.Equal(t, "the header", `would deny; limit="requests_per_minute"; owner="tried"; used=13; max=10`, a.header.Get("X-Ratelimit-Shadow"))
	last := r.last(t)
	testkit.Equal(t, "the decision", [3]string{"passed", "requests_per_minute", "tried"}, [3]string{string(last.Outcome), last.ShadowLimit, last.ShadowOwner})
	said := 0
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["shadow_limit"] == "requests_per_minute" && fields["shadow_owner"] == "tried" {
			said++
		}
	}
	testkit.Equal(t, "lines of the log", 3, said)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(r.Metrics(), promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if want := `ratelimit_gateway_shadow_total{limit="requests_per_minute",provider="openai"} 3`; !strings.Contains(page.Body.String(), want) {
		t.Errorf("the metrics do not have %s", want)
	}
	if strings.Contains(a.header.Get("Ratelimit"), "r=-") {
		t.Errorf("%v", a.header)
	}
}

// What an operator switches comes before what the file says, for all, for a project with all below it,
// and for a model; and what was counted in shadow counts when it is enforced.
func TestShadowAtRunTime(t *testing.T) {
	r := newRig(t, shadowRig, mockprovider.Config{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Controls().SetProject(ctx, "acme", control.Project{Mode: config.ModeShadow}))
	testkit.Equal(t, "the mode below it", config.ModeShadow, r.ProjectMode("acme/search"))
	statuses, told := r.rush(t, 20, "acme/search", "wide")
	testkit.Equal(t, "a project", map[int]int{200: 20}, statuses)
	testkit.Equal(t, "told of a project", 15, told)
	must(r.Controls().SetProject(ctx, "acme", control.Project{}))
	statuses, _ = r.rush(t, 5, "acme", "wide")
	testkit.Equal(t, "what was counted", map[int]int{429: 5}, statuses)

	must(r.Controls().SetModel(ctx, "tight", control.Model{Mode: config.ModeShadow}))
	statuses, _ = r.rush(t, 20, "new", "tight")
	testkit.Equal(t, "a model", map[int]int{200: 20}, statuses)
	must(r.Controls().SetModel(ctx, "tried", control.Model{Mode: config.ModeEnforce}))
	statuses, _ = r.rush(t, 20, "new", "tried")
	testkit.Equal(t, "a model that the file has in shadow", map[int]int{200: 10, 429: 10}, statuses)

	must(r.Controls().SetGateway(ctx, control.Gateway{Mode: config.ModeShadow}))
	for _, project := range []string{"acme", "acme/search/alice", "new"} {
		statuses, told = r.rush(t, 20, project, "tried")
		testkit.Equal(t, "all: "+project, map[int]int{200: 20}, statuses)
		testkit.Equal(t, "told of all: "+project, 20, told)
	}
	if a := r.do(t, "GET", "/openai/v1/models", "", "X-Project-ID", "acme"); a.status != 200 || a.header.Get("X-Ratelimit-Shadow") == "" {
		t.Errorf("a request that calls no model: %d %v", a.status, a.header)
	}
	r.pause(t, "acme", true)
	statuses, _ = r.rush(t, 1, "acme", "wide")
	testkit.Equal(t, "a pause is no limit", map[int]int{429: 1}, statuses)
	must(r.Controls().SetGateway(ctx, control.Gateway{}))
	statuses, _ = r.rush(t, 5, "new", "tried")
	testkit.Equal(t, "enforced again", map[int]int{429: 5}, statuses)
}

// A gateway in shadow denies nothing while the store does not answer, and no batch for its size or its
// price.
func TestShadowOfTheGatewayDeniesNothing(t *testing.T) {
	r := newRig(t, "mode: shadow\n"+batchRig, mockprovider.Config{})
	testkit.Equal(t, "the mode", config.ModeShadow, r.Mode())
	var lines []string
	for i := range 500 {
		lines = append(lines, strings.Replace(batchLine(fmt.Sprint(i), "gpt-4o"), `"messages"`, `"max_tokens":100000,"messages"`, 1))
	}
	file := r.uploadFile(t, strings.Join(lines, "\n"), "batch")
	submit, _ := json.Marshal(map[string]string{"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"})
	a := r.post(t, "/openai/v1/batches", string(submit), "X-Project-ID", "acme")
	if a.status != 200 || !strings.Contains(a.header.Get("X-Ratelimit-Shadow"), `limit="tokens_per_day"`) {
		t.Errorf("a batch that costs too much: %d %s %v", a.status, a.body, a.header)
	}
	a = r.post(t, chat, `{"model":"no-price-is-known","messages":[{"role":"user","content":"Hello"}]}`, "X-Project-ID", "other")
	if a.status != 200 {
		t.Errorf("a model without a price: %d %s", a.status, a.body)
	}
	if err := r.Models().Close(); err != nil { // from now on, the limits cannot be asked
		t.Fatal(err)
	}
	if err := r.Projects().Close(); err != nil {
		t.Fatal(err)
	}
	a = r.post(t, chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`, "X-Project-ID", "other")
	if a.status != 200 || r.last(t).ShadowLimit != shadowLost {
		t.Errorf("the limits cannot be asked: %d %s", a.status, a.body)
	}
}
