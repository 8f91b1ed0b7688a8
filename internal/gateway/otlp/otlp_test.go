package otlp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The context of a trace that is not valid begins a trace of its own, and what a client sends decides whether its trace
// is sampled.
func TestStart(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for text, want := range map[string]struct{ none, all, continued bool }{
		"00-" + trace + "-" + parent + "-01":      {true, true, true},
		"00-" + trace + "-" + parent + "-00":      {false, false, true},
		"01-" + trace + "-" + parent + "-03-more": {true, true, true},
		"":                           {false, true, false},
		"00-" + trace + "-" + parent: {false, true, false},
		"00-" + trace + "-" + parent + "-01-more":              {false, true, false},
		"ff-" + trace + "-" + parent + "-01":                   {false, true, false},
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": {false, true, false},
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":  {false, true, false},
		"00-" + strings.Repeat("x", 32) + "-" + parent + "-01": {false, true, false},
		"00-" + trace + "-" + parent + "-zz":                   {false, true, false},
	} {
		none, all := (&Exporter{cfg: Config{Sample: 0}}).Start(text), (&Exporter{cfg: Config{Sample: 100}}).Start(text)
		if none.Sampled != want.none || all.Sampled != want.all || strings.Contains(all.Parent(), trace) != want.continued {
			t.Errorf("%q: %v, %v, %s", text, none.Sampled, all.Sampled, all.Parent())
		}
	}
}

// Calls of models beyond a number of names are counted without the name, and an error is an attribute.
func TestCallsOfManyModels(t *testing.T) {
	e := &Exporter{calls: newCalls(), cfg: Config{Gatherer: prometheus.NewRegistry()}}
	for i := range maxModels + 5 {
		e.Observe(Call{Operation: "chat", Provider: "openai", Model: strconv.Itoa(i), Input: 1})
	}
	e.Observe(Call{Operation: "chat", Provider: "openai", Model: "0", Error: "503"})
	families, err := e.gather()
	if err != nil || len(families) != 2 {
		t.Fatal(err, len(families))
	}
	took := metricsOf(families, time.Now(), time.Now())[0]["histogram"].(object)["dataPoints"].([]object)
	var unnamed, failed any
	for _, p := range took {
		text := fmt.Sprint(p["attributes"])
		if !strings.Contains(text, "gen_ai.request.model") {
			unnamed = p["count"]
		}
		if strings.Contains(text, "error.type") {
			failed = p["count"]
		}
	}
	if len(took) != maxModels+2 || unnamed != "5" || failed != "1" {
		t.Errorf("%d series, %v calls without a model, %v that have failed", len(took), unnamed, failed)
	}
	(&Exporter{}).Observe(Call{}) // without metrics
}

// Spans beyond what can wait are dropped and counted, and so are those that a collector does not take. What waits is sent
// at the end.
func TestDropped(t *testing.T) {
	var mu sync.Mutex
	status, taken := http.StatusOK, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%v", r.Header)
		}
		taken++
		w.WriteHeader(status)
	}))
	defer server.Close()
	var failed []string
	e := New(Config{Endpoint: server.URL + "/", Token: "secret", Sample: 100, Gatherer: prometheus.NewRegistry()})
	for range 10 {
		e.End(e.Start(""))
	}
	e.Close()
	if taken != 1 || e.Dropped() != 0 {
		t.Errorf("%d batches, %d dropped", taken, e.Dropped())
	}
	status = http.StatusServiceUnavailable
	e = New(Config{Endpoint: server.URL, Token: "secret", Sample: 100, OnError: func(err error) { failed = append(failed, err.Error()) }})
	e.End(e.Start(""))
	e.Close()
	if e.Dropped() != 1 || len(failed) != 1 || !strings.Contains(failed[0], "503") {
		t.Errorf("%d dropped, %q", e.Dropped(), failed)
	}
	full := &Exporter{queue: make(chan Span, 1)}
	for range 3 {
		full.End(Span{Sampled: true})
	}
	full.End(Span{})
	if full.Dropped() != 2 {
		t.Errorf("%d dropped", full.Dropped())
	}
}
