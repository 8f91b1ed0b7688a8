package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// fullRecord is a record in which no field is empty.
func fullRecord() *Record {
	return &Record{
		Seq: 7, ID: "gw_a_7", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Client: "10.0.0.7:51512", Project: "search", User: "alice", Run: "r1", Key: "abcdefghij",
		Provider: "openai", Deployment: "eu", Method: "POST", Path: "/openai/v1/chat/completions",
		Model: "best", Quota: "gpt-6-astra", Stream: true, Outcome: Failed, Limit: "max_tpm", Scope: "model", Owner: "gpt-6-astra", Status: 502,
		Waited: 250 * time.Millisecond, Upstream: 500 * time.Millisecond, Took: 2 * time.Second, RequestID: "req_1", Retries: 2,
		ShadowLimit: "requests_per_minute", ShadowOwner: "acme", Fit: 812, Input: 900, Output: 300, Cached: 100, Exact: true, Error: "connection reset",
	}
}

// lines returns the log of some requests.
func lines(t *testing.T, level slog.Level, sample int, recs ...*Record) (list []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	log := newAccessLog(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})), sample)
	for _, rec := range recs {
		log.write(rec)
	}
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, fields)
	}
	return list
}

func TestAccessLogSaysEverything(t *testing.T) {
	rec := fullRecord()
	fields := reflect.ValueOf(*rec)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("this test has no %s", fields.Type().Field(i).Name)
		}
	}
	got := lines(t, slog.LevelInfo, 1, rec)[0]
	delete(got, "time")
	want := map[string]any{
		"level": "ERROR", "msg": "request", "seq": 7., "id": "gw_a_7", "came": "2026-03-01T12:00:00Z", "outcome": "failed", "status": 502., "client": "10.0.0.7:51512",
		"method": "POST", "path": "/openai/v1/chat/completions", "project": "search", "user": "alice", "run": "r1", "key": "abcdefghij",
		"provider": "openai", "deployment": "eu", "model": "best", "quota": "gpt-6-astra", "stream": true, "limit": "max_tpm", "scope": "model", "owner": "gpt-6-astra",
		"took": 2., "waited": .25, "upstream": .5, "request_id": "req_1", "retries": 2., "input_tokens": 900., "output_tokens": 300.,
		"shadow_limit": "requests_per_minute", "shadow_owner": "acme", "fit": 812., "cached_tokens": 100., "exact": true, "error": "connection reset",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccessLogLeavesOutWhatIsEmpty(t *testing.T) {
	got := lines(t, slog.LevelInfo, 1, &Record{Outcome: Passed, Status: 200, Method: "GET", Path: "/"})[0]
	delete(got, "time")
	want := map[string]any{
		"level": "INFO", "msg": "request", "seq": 0., "came": "0001-01-01T00:00:00Z",
		"outcome": "passed", "status": 200., "method": "GET", "path": "/", "took": 0.,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccessLogLevels(t *testing.T) {
	for outcome, want := range map[Outcome]string{
		Passed: "INFO", Denied: "WARN", Refused: "WARN", Left: "WARN", Throttled: "WARN", Failed: "ERROR", Lost: "ERROR",
	} {
		if got := lines(t, slog.LevelInfo, 1, &Record{Outcome: outcome})[0]["level"]; got != want {
			t.Errorf("%s is logged as %s: want %s", outcome, got, want)
		}
	}
	if got := lines(t, slog.LevelWarn, 1, &Record{Outcome: Passed}, &Record{Outcome: Denied}); len(got) != 1 {
		t.Errorf("at level warn: %v", got)
	}
}

// Sampling leaves out only requests that passed.
func TestAccessLogSample(t *testing.T) {
	var recs []*Record
	for i := range uint64(9) {
		recs = append(recs, &Record{Seq: 10 + i, Outcome: Passed, Status: 200})
	}
	recs = append(recs, &Record{Seq: 1, Outcome: Failed, Status: 400}, &Record{Seq: 2, Outcome: Throttled, Status: 429},
		&Record{Seq: 3, Outcome: Denied, Status: 429}, &Record{Seq: 4, Outcome: Left, Status: 200})
	for sample, want := range map[int]string{
		-1: "[10 11 12 13 14 15 16 17 18 1 2 3 4]",
		0:  "[10 11 12 13 14 15 16 17 18 1 2 3 4]",
		1:  "[10 11 12 13 14 15 16 17 18 1 2 3 4]",
		4:  "[10 14 18 1 2 3 4]",
		50: "[10 1 2 3 4]",
	} {
		var got []any
		for _, line := range lines(t, slog.LevelInfo, sample, recs...) {
			got = append(got, line["seq"])
		}
		testkit.Equal(t, fmt.Sprintf("one of %d", sample), want, fmt.Sprint(got))
	}
}

func TestAccessLogAllocations(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	rec := fullRecord()
	rec.Outcome, rec.Status = Passed, 200
	if got := len(attrsOf(rec, nil)); got != maxAttrs {
		t.Errorf("it has %d attributes: there is room for %d", got, maxAttrs)
	}
	rec.ShadowLimit = "" // a record that has it is in every sample
	for name, c := range map[string]struct {
		log  *accessLog
		most float64
	}{
		"off":         {newAccessLog(slog.New(slog.DiscardHandler), 1), 0},
		"not sampled": {newAccessLog(slog.New(null{}), 1<<40), 0},
		"written":     {newAccessLog(slog.New(null{}), 1), 2}, // slog allocates for more than five attributes: once, or twice with the race detector
	} {
		c.log.write(rec)
		if got := testing.AllocsPerRun(100, func() { c.log.write(rec) }); got > c.most {
			t.Errorf("%s: %v allocations: want at most %v", name, got, c.most)
		}
	}
}

// null is a handler that accepts every record, and writes nothing.
type null struct{}

func (null) Enabled(context.Context, slog.Level) bool  { return true }
func (null) Handle(context.Context, slog.Record) error { return nil }
func (null) WithAttrs([]slog.Attr) slog.Handler        { return null{} }
func (null) WithGroup(string) slog.Handler             { return null{} }

// A record has the client's address and the provider's id of the request.
func TestRecordNamesClientAndProvider(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		path, body string
		header     http.Header // of the provider's answer
		want       string
	}{
		"OpenAI":        {"/openai/v1/chat/completions", `{"model":"m","messages":[]}`, http.Header{"X-Request-Id": {"req_1"}}, "req_1"},
		"Anthropic":     {"/anthropic/v1/messages", `{"model":"m","messages":[]}`, http.Header{"Request-Id": {"req_2"}}, "req_2"},
		"both":          {"/openai/v1/chat/completions", `{"model":"m","messages":[]}`, http.Header{"Request-Id": {"a"}, "X-Request-Id": {"b"}}, "b"},
		"no call":       {"/openai/v1/files", "{}", http.Header{"X-Request-Id": {"req_3"}}, "req_3"},
		"none":          {"/openai/v1/chat/completions", `{"model":"m","messages":[]}`, nil, ""},
		"a long one":    {"/openai/v1/files", "{}", http.Header{"X-Request-Id": {long}}, long[:256] + "…"},
		"it is refused": {"/nobody/v1/files", "{}", http.Header{"X-Request-Id": {"req_4"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigBefore(t, oneOfEach, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), c.header)
				io.WriteString(w, "{}")
			}))
			r.post(t, c.path, c.body)
			rec := r.last(t)
			if host, _, err := net.SplitHostPort(rec.Client); host != "127.0.0.1" || err != nil || rec.RequestID != c.want {
				t.Errorf("from %q, the provider's %q: want %q", rec.Client, rec.RequestID, c.want)
			}
		})
	}
}

func BenchmarkAccessLog(b *testing.B) {
	log := newAccessLog(slog.New(slog.NewJSONHandler(io.Discard, nil)), 1)
	rec := fullRecord()
	b.ReportAllocs()
	for b.Loop() {
		log.write(rec)
	}
}
