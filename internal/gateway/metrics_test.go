package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// gathered returns the values of metrics whose names have a prefix. A histogram has two: the
// number of its observations, and their sum.
func gathered(t *testing.T, m *metrics, prefix string) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		for _, each := range f.Metric {
			var labels []string
			for _, l := range each.Label {
				labels = append(labels, l.GetValue())
			}
			name := strings.TrimPrefix(f.GetName(), prefix) + fmt.Sprint(labels)
			switch {
			case each.Counter != nil:
				values[name] = each.Counter.GetValue()
			case each.Gauge != nil:
				values[name] = each.Gauge.GetValue()
			case each.Histogram != nil:
				values[name+" count"] = float64(each.Histogram.GetSampleCount())
				values[name+" sum"] = each.Histogram.GetSampleSum()
			}
		}
	}
	return values
}

func none() int { return 0 }

func TestMetrics(t *testing.T) {
	m := newMetrics(func() int { return 3 })
	for _, rec := range []Record{
		{Provider: "openai", Outcome: Passed, Status: 200, Took: 2 * time.Second, Upstream: time.Second},
		{Provider: "openai", Outcome: Passed, Status: 201, Took: time.Second, Upstream: time.Second, Retries: 2},
		{Provider: "openai", Outcome: Denied, Status: 429},
		{Provider: "groq", Outcome: Failed, Status: 502, Retries: 1},
		{Provider: "groq", Outcome: Left, Status: 499},
		{Outcome: Refused, Status: 404},
		{Outcome: Refused, Status: 401},
		{Outcome: Passed},
	} {
		m.observe(&rec)
	}
	m.reloaded(nil)
	m.reloaded(errors.New("bad"))
	m.reloaded(errors.New("bad"))
	want := map[string]float64{
		"active[]":                          3,
		"reloads_total[done]":               1,
		"reloads_total[failed]":             2,
		"webhooks_total[done]":              0,
		"webhooks_total[failed]":            0,
		"requests_total[passed openai 2xx]": 2,
		"requests_total[denied openai 429]": 1,
		"requests_total[failed groq 5xx]":   1,
		"requests_total[left groq 4xx]":     1,
		"requests_total[refused none 4xx]":  2,
		"requests_total[passed none other]": 1,
		"retries_total[openai]":             2,
		"retries_total[groq]":               1,
		"retries_total[none]":               0,
		"request_seconds[openai] count":     3,
		"request_seconds[openai] sum":       3,
		"request_seconds[groq] count":       2,
		"request_seconds[groq] sum":         0,
		"request_seconds[none] count":       3,
		"request_seconds[none] sum":         0,
		"upstream_seconds[openai] count":    2,
		"upstream_seconds[openai] sum":      2,
		"upstream_seconds[groq] count":      0,
		"upstream_seconds[groq] sum":        0,
		"upstream_seconds[none] count":      0,
		"upstream_seconds[none] sum":        0,
	}
	if diff := cmp.Diff(want, gathered(t, m, "ratelimit_gateway_")); diff != "" {
		t.Error(diff)
	}
}

func TestStatusClass(t *testing.T) {
	for status, want := range map[int]string{
		-1: "other", 0: "other", 101: "other", 200: "2xx", 299: "2xx", 304: "3xx", 400: "4xx",
		428: "4xx", 429: "429", 430: "4xx", 499: "4xx", 500: "5xx", 529: "5xx", 599: "5xx", 600: "other",
	} {
		if got := statusClass(status); got != want {
			t.Errorf("%d is %s: want %s", status, got, want)
		}
	}
}

// A provider that a reload adds gets series of its own. A name that only clients use does not.
func TestMetricsLabelProviders(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	const call = "/groq/v1/chat/completions"
	r.post(t, call, hello)
	mock := r.Config().Providers["openai"].Deployments[""].BaseURL
	if err := r.Reload(gatewaytest.Config(t, oneOfEach+"  groq: {base_url: MOCK}\n", mock)); err != nil {
		t.Fatal(err)
	}
	r.post(t, call, hello)
	r.settled(t)
	testkit.Equal(t, "requests", map[string]float64{"[refused none 4xx]": 1, "[passed groq 2xx]": 1},
		gathered(t, r.metrics, "ratelimit_gateway_requests_total"))
}

func TestMetricsOfTheLimiter(t *testing.T) {
	m := newMetrics(none)
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: t.TempDir() + "/limits.yaml",
		Quotas:   map[string]ratelimit.ModelQuota{"gpt-6": {MaxRPM: 5}},
		Observer: m.limiter,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	m.follow(rl, project.New(nil), func() []string { return nil })
	if _, d, err := rl.TryAcquireCall(context.Background(), ratelimit.Call{Model: "gpt-6"}); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	got := gathered(t, m, "ratelimit_model_used")
	if diff := cmp.Diff(map[string]float64{"[max_rpm gpt-6]": 1}, got); diff != "" {
		t.Error(diff)
	}
	for _, prefix := range []string{"ratelimit_decisions_total", "go_goroutines", "go_build_info", "process_start_time"} {
		if len(gathered(t, m, prefix)) == 0 {
			t.Errorf("no %s", prefix)
		}
	}
}

func TestMetricsConcurrently(t *testing.T) {
	m := newMetrics(none)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 300 {
				m.observe(&Record{Provider: string(rune('a' + i%3)), Outcome: Passed, Status: 200})
			}
		})
	}
	wg.Wait()
	want := map[string]float64{"[passed a 2xx]": 800, "[passed b 2xx]": 800, "[passed c 2xx]": 800}
	if diff := cmp.Diff(want, gathered(t, m, "ratelimit_gateway_requests_total")); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsAllocateNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	m := newMetrics(none)
	rec := fullRecord()
	m.observe(rec)
	if got := testing.AllocsPerRun(100, func() { m.observe(rec) }); got != 0 {
		t.Errorf("%v allocations: want none", got)
	}
}

func BenchmarkMetrics(b *testing.B) {
	m := newMetrics(none)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		rec := fullRecord()
		for pb.Next() {
			m.observe(rec)
		}
	})
}

// Projects that an operator names while the gateway runs get labels: by a reload, a key or a
// limit. Projects that only clients name do not.
func TestMetricsLabelProjects(t *testing.T) {
	const yaml = oneOfEach + "state: memory\nprojects: {first: {}"
	r := newRig(t, yaml+"}\n", mockprovider.Config{})
	decisions := func() map[string]float64 {
		counted := map[string]float64{}
		for name, n := range gathered(t, r.metrics, "ratelimit_decisions_total") {
			counted[strings.Split(strings.Trim(name, "[]"), " ")[3]] += n // limit, model, outcome, project, shadow
		}
		return counted
	}
	reload := func() error {
		return r.Reload(gatewaytest.Config(t, yaml+", second: {}}\n", r.Config().Providers["openai"].Deployments[""].BaseURL))
	}
	key := func() error { _, _, err := r.Keys().Create(t.Context(), "third", "", 0); return err }
	limit := func() error { return r.Projects().SetLimit("fourth", project.Limit{RequestsPerMinute: 9}) }
	scrape := func() { decisions() }
	for _, step := range []struct {
		do      func() error
		scraped func() // a scrape before the call; may be nil
		project string
		want    map[string]float64
	}{
		{nil, nil, "first", map[string]float64{"first": 1}},
		{nil, nil, "second", map[string]float64{"first": 1, "other": 1}},
		{reload, func() {}, "second", map[string]float64{"first": 1, "other": 1, "second": 1}},
		{key, scrape, "third", map[string]float64{"first": 1, "other": 1, "second": 1, "third": 1}},
		{limit, scrape, "fourth", map[string]float64{"first": 1, "other": 1, "second": 1, "third": 1, "fourth": 1}},
		{nil, nil, "client", map[string]float64{"first": 1, "other": 2, "second": 1, "third": 1, "fourth": 1}},
	} {
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			step.scraped()
		}
		if a := r.post(t, "/openai/v1/chat/completions", `{"model": "gpt-4o", "messages": []}`, "X-Project-ID", step.project); a.status != 200 {
			t.Fatal(a)
		}
		r.settled(t)
		testkit.Equal(t, step.project, step.want, decisions())
	}
}

// The number of projects with a label is bounded, whichever projects come and go.
func TestMetricsBoundProjects(t *testing.T) {
	m := newMetrics(none)
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Observer: m.limiter, FilePath: t.TempDir() + "/limits.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	named := []string{"other"}
	m.follow(rl, project.New(nil), func() []string { return named })
	for i := range 3 * maxLabelled {
		named = []string{fmt.Sprint(i), fmt.Sprint(i + 1)}
		m.labelProjects()
		m.limiter.Observe(t.Context(), event.Event{Kind: event.Cancelled, Project: named[0]})
	}
	if got := gathered(t, m, "ratelimit_cancelled_total"); len(got) != maxLabelled+1 || got["[ other]"] != 2*maxLabelled {
		t.Errorf("%d series; %v are of others", len(got), got["[ other]"])
	}
}

// Metrics have what calls cost, what those that were denied would have cost, and where each budget stands.
func TestMetricsOfMoney(t *testing.T) {
	r := newRig(t, priced, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Output: 800, Cached: 30}
	}})
	const cost = (8*2_000 + 30*200 + 800*10_000) / 1e9
	call := strings.Replace(hello38, `"max_tokens":100`, `"max_tokens":800`, 1)
	for _, want := range []int{200, 402} {
		if a := r.post(t, chat, call, "X-Project-ID", "acme"); a.status != want {
			t.Fatalf("%d: %s", a.status, a.body)
		}
		r.settled(t)
	}
	testkit.Equal(t, "used", map[string]float64{"[gpt-4o acme]": cost}, gathered(t, r.metrics, "ratelimit_used_dollars_total"))
	if denied := gathered(t, r.metrics, "ratelimit_denied_dollars_total")["[gpt-4o acme]"]; denied < 38*2_000/1e9 || denied > 1 {
		t.Errorf("$%v were denied", denied)
	}
	testkit.Equal(t, "budgets", map[string]float64{"used[dollars acme]": cost, "limit[dollars acme]": 0.01, "reserved[dollars acme]": 0},
		gathered(t, r.metrics, "ratelimit_budget_"))
}

// The alerts name only metrics of the gateway that there are.
func TestAlertsOfTheGateway(t *testing.T) {
	text, err := os.ReadFile("../../telemetry/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics(none)
	m.observe(&Record{Provider: "openai", Outcome: Passed, Status: 200})
	names := regexp.MustCompile(`ratelimit_gateway_\w+`).FindAllString(string(text), -1)
	for _, name := range names {
		if len(gathered(t, m, name)) == 0 {
			t.Errorf("nobody exports %s", name)
		}
	}
	if len(names) == 0 {
		t.Error("no alert is about the gateway")
	}
}
