package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// decide says yes, later or never, and its exit code says it too; explain says why a call was denied.
func TestDecideAndExplain(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	t.Setenv("COLUMNS", "80")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {acme: {requests_per_minute: 1, max_wait: 0s}}"))
	for range 2 { // nothing is charged
		if got := run(t, "decide", "m", "1_200", "--project", "acme"); got.code != exitFine || !strings.HasPrefix(got.stdout, "yes\n") || !strings.Contains(got.stdout, "max_tpm              5,000   1,200  5,000  yes") {
			t.Errorf("%+v", got)
		}
	}
	if got := run(t, "decide", "m", "5001"); got.code != exitNo || !strings.HasPrefix(got.stdout, "no\n") || !strings.Contains(got.stdout, "never") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	tail := followWith(t, "--outcome", "denied")
	s.ask(t, "acme", "any")
	if status := s.ask(t, "acme", "any"); status != http.StatusTooManyRequests {
		t.Fatalf("status %d", status)
	}
	if got := run(t, "decide", "m", "100", "--project", "acme"); got.code != exitNo || !strings.Contains(got.stdout, "It would pass in ") || !strings.Contains(got.stdout, "acme      requests_per_minute      0       1      1  no") {
		t.Errorf("%+v", got)
	}
	var answer admin.Answer
	if got := run(t, "decide", "m", "100", "--project", "acme", "--output", "40", "--json"); got.code != exitNo || json.Unmarshal([]byte(got.stdout), &answer) != nil || answer.Owner != "acme" {
		t.Errorf("%+v", got)
	}
	id := tail.stdout.Await(t, `denied     acme  m  by requests_per_minute of acme  …  (\S+)\n`)
	if strings.Contains(tail.stdout.String(), "passed") {
		t.Error(tail.stdout)
	}
	got := run(t, "explain", id)
	for _, want := range []string{"denied     acme  m", "acme      requests_per_minute      0       1      1  no", "requests_per_minute", "  - "} {
		if got.code != exitFine || !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in %+v", want, got)
		}
	}
	var e admin.Explanation
	if got := run(t, "explain", id, "--json"); json.Unmarshal([]byte(got.stdout), &e) != nil || e.ID != id {
		t.Errorf("%+v", got)
	}
	if got := run(t, "explain", "nonsense"); got.code != exitFailed || !strings.Contains(got.stderr, "`ratelimit tail` shows the ids of requests") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "decide", "gpt-4oo", "5"); got.code != exitFailed || !strings.Contains(got.stderr, "did you mean gpt-4o? (--provider NAME says whose model it is)") {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"decide m", "decide m many", "decide m -5", "decide m 5 --output 6", "explain"} {
		if got := run(t, strings.Fields(args)...); got.code != exitUsage {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// Nobody knows when a call ends that holds a slot: its lease is no answer.
func TestDecideSaysThatSlotsComeBackWithCalls(t *testing.T) {
	got := shown(limitLines([]admin.AskedLimit{{Limit: "max_concurrent", Unit: "calls", Owner: "m", Max: 8, Needed: 1, RetryAfter: 599.7}}, time.Time{}, 80))
	if !strings.HasSuffix(got, "no      when one ends") {
		t.Error(got)
	}
}

// What a run has used does not come back while the run is known.
func TestDecideOfARun(t *testing.T) {
	got := shown(answerLines(admin.Answer{Reason: "stop", RetryAfter: 3587.6, Limits: []admin.AskedLimit{{Limit: "runs.calls", Unit: "requests", Scope: "run", Owner: "r", Max: 3, Needed: 1, RetryAfter: 3587.6}}}, time.Time{}, 80))
	want := `
no
stop
The run's budget does not reset; the run is forgotten in 59m48s.

limit of  limit       left  needed  max  enough  in
r         runs.calls     0       1    3  no      59m48s`
	if got != want {
		t.Error(got)
	}
}

// A time that is not today has its date.
func TestDecideSaysTheDate(t *testing.T) {
	now := time.Date(2026, 11, 17, 22, 0, 0, 0, time.UTC)
	for wait, want := range map[float64]string{90: "It would pass in 1m30s, at 22:01:30, if", 7200: "It would pass in 2h0m0s, at 2026-11-18 00:00:00, if"} {
		if got := shown(answerLines(admin.Answer{RetryAfter: wait}, now, 200)); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// following is a tail that a test has started.
type following struct {
	stdout, stderr *testkit.Log
	end            context.CancelFunc
	code           chan int
}

// followWith starts a tail, and waits until it follows.
func followWith(t *testing.T, args ...string) *following {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	f := &following{new(testkit.Log), new(testkit.Log), end, make(chan int, 1)}
	go func() {
		f.code <- Main(ctx, append([]string{"tail"}, args...), nil, f.stdout, f.stderr)
		close(f.code)
	}()
	t.Cleanup(func() {
		end()
		<-f.code
	})
	f.stderr.Await(t, "following the gateway")
	return f
}

// tail shows changes, ends after the number of events that it was given, and follows a gateway that comes back.
func TestTail(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	config := withMock(t, "projects: {acme: {weight: 2}}")
	address := testkit.NewPort(t).Addr
	s := serveWith(t, "--state", "memory", "--config", config, "--admin", address)
	all, changes, one := followWith(t), followWith(t, "--kind", "change", "--json"), followWith(t, "-n", "1", "--project", "acme")
	run(t, "project", "set", "acme", "weight=5")
	all.stdout.Await(t, `change +weight: 2 → 5, action project.change, result done, subject acme`)
	var event struct {
		Event string      `json:"event"`
		Data  admin.Entry `json:"data"`
	}
	if err := json.Unmarshal([]byte(changes.stdout.Await(t, `.*project\.change.*\n`)), &event); err != nil || event.Event != "change" || event.Data.Subject != "acme" {
		t.Errorf("%v: %+v", err, event)
	}
	if code := <-one.code; code != exitFine {
		t.Errorf("code %d: %s", code, one.stderr)
	}
	s.end()
	<-s.code
	all.stderr.Await(t, "trying again")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin", address, "--state", "memory", "--config", config}, nil, io.Discard, io.Discard)
	}()
	defer func() {
		end()
		<-ended
	}()
	all.stderr.AwaitTimes(t, "following the gateway", 2)
	if got := run(t, "tail", "--outcome", "lucky"); got.code != exitFailed || !strings.Contains(got.stderr, "outcome") {
		t.Errorf("%+v", got)
	}
}

// What clients have chosen commands no terminal, in any line that is printed.
func TestHostileNames(t *testing.T) {
	hostile := "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e"
	d, err := json.Marshal(map[string]any{"time": "2026-11-16T03:00:00Z", "outcome": "denied", "project": hostile, "model": hostile, "limit": hostile, "owner": hostile, "id": hostile, "error": hostile})
	if err != nil {
		t.Fatal(err)
	}
	var decision admin.Decision
	json.Unmarshal(d, &decision)
	row := admin.Row{Name: hostile, Closest: hostile, Dimensions: []admin.Dimension{{Name: hostile}}, Pause: &admin.RowPause{Reason: hostile}}
	limit := admin.AskedLimit{Owner: hostile, Limit: hostile, Unit: hostile}
	for name, lines := range map[string][]string{
		"decision":    {eventLine("decision", d, 80)},
		"event":       {eventLine(hostile, d, 0)},
		"row":         rowLines("project", []admin.Row{row}, 1, 80),
		"explanation": explanationLines(admin.Explanation{Decision: decision, Sentence: hostile, Advice: []string{hostile}, Limits: []admin.AskedLimit{limit}}, 80),
		"audit":       auditLines([]admin.Entry{{Action: hostile, Subject: hostile, Who: hostile, Result: hostile, Error: hostile, After: map[string]any{hostile: hostile}}}, 80),
		"status":      statusLines(admin.State{Version: hostile, Reason: hostile, Models: []admin.Model{{Name: hostile}}, Projects: []admin.Project{{ID: hostile}}}, 80),
		"preview":     previewLines(hostile, admin.Preview{Changed: []admin.FieldChange{{Field: hostile, Before: hostile, After: hostile}}, Lifted: []string{hostile}}, 80),
	} {
		text := shown(lines)
		if strings.ContainsAny(text, "\x1b\x07\u009b\u202e") || !strings.Contains(text, `\x1b`) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// A line has the time at which its request ended, so that lines are in the order of their times.
func TestDecisionsAreInTheOrderOfTheirEnds(t *testing.T) {
	came := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	d := admin.Decision{Record: gateway.Record{ID: "gw_1", Time: came, Project: "acme", Model: "m", Outcome: gateway.Passed, Status: 200}, Took: 61}
	if got, want := decisionLine(d, 0), "12:01:01  passed     acme  m  200  gw_1"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
