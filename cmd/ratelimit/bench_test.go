package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A benchmark says how much has passed, and finds no overshoot of a gateway that has none.
func TestBench(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {search: {requests_per_minute: 20, max_wait: 0s}}"))
	args := []string{"bench", "m", "--url", s.base + "/openai/v1", "--project", "search", "--calls", "50", "--callers", "4"}
	got := run(t, append(args, "--json")...)
	var r benchReport
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != exitFine {
		t.Fatalf("%v: %+v", err, got)
	}
	if r.Passed != 20 || r.Denied != 30 || r.Failed != 0 || r.Tokens == 0 || r.Statuses["429"] != 30 || r.Latency["p50"] <= 0 || len(r.Histogram) == 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Limits) != 3 || r.Limits[2].Limit != "requests_per_minute" || r.Limits[2].Most != 20 || r.Limits[2].Overshoot != 0 {
		t.Errorf("%+v", r.Limits)
	}
	if got := run(t, args...); got.code != exitFine || !strings.Contains(got.stdout, "0 calls passed") || !strings.Contains(got.stdout, "50 denied") {
		t.Errorf("%+v", got)
	}
}

// Calls that can never pass are denied, although their status is that of a bad request.
func TestBenchOfCallsThatNeverPass(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {search: {tokens_per_minute: 1}}"))
	got := run(t, "bench", "m", "--url", s.base+"/openai/v1", "--project", "search", "--calls", "3", "--callers", "1", "--json")
	var r benchReport
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.Denied != 3 || r.Failed != 0 || r.Statuses["400"] != 3 {
		t.Errorf("%v: %+v", err, got)
	}
}

// A benchmark without a key says what it lacks, and measures nothing.
func TestBenchWithoutAKey(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	t.Setenv("RATELIMIT_KEY", "")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "keys: required\n"))
	got := run(t, "bench", "m", "--url", s.base+"/openai/v1", "--calls", "2", "--callers", "1")
	if got.code != exitFailed || !strings.Contains(got.stdout, "statuses 401: 2") || !strings.Contains(got.stderr, "put it into the variable RATELIMIT_KEY") {
		t.Errorf("%+v", got)
	}
}

// Only calls that were sent and answered within a minute are certain to have been admitted in it.
func TestMostInAMinute(t *testing.T) {
	at := func(sent, answered float64, tokens int) benchCall {
		return benchCall{sent: time.Duration(sent * 1e9), answered: time.Duration(answered * 1e9), tokens: tokens}
	}
	for _, c := range []struct {
		name           string
		calls          []benchCall
		most, ofTokens int
	}{
		{"none", nil, 0, 0},
		{"within", []benchCall{at(0, 1, 5), at(30, 31, 7), at(59, 60, 9)}, 3, 21},
		{"a moment too long", []benchCall{at(0, 1, 5), at(30, 31, 7), at(59, 60.1, 9)}, 2, 16},
		{"the second minute has more", []benchCall{at(0, 1, 1), at(61, 62, 1), at(70, 71, 1), at(100, 121, 1)}, 3, 3},
		{"a call that took longer", []benchCall{at(0, 61, 5)}, 0, 0},
		{"beside a call that took longer", []benchCall{at(0, 61, 5), at(0.9, 60.5, 7)}, 1, 7},
	} {
		if most, tokens := mostInAMinute(c.calls, false), mostInAMinute(c.calls, true); most != c.most || tokens != c.ofTokens {
			t.Errorf("%s: %d calls, %d tokens", c.name, most, tokens)
		}
	}
}

// Overshoot is in the report, and in the exit code.
func TestBenchFindsOvershoot(t *testing.T) {
	r := &benchReport{calls: []benchCall{{answered: 1, tokens: 10}, {sent: 2, answered: 3, tokens: 10}, {sent: 4, answered: 5, tokens: 10}}}
	r.judge([]judged{{Owner: "m", Limit: "max_rpm", Max: 2}, {Owner: "m", Limit: "max_tpm", Max: 30, tokens: true}}, "")
	if !r.overshoots() || r.Limits[0].Overshoot != 1 || r.Limits[1].Overshoot != 0 {
		t.Errorf("%+v", r.Limits)
	}
	if text := shown(r.lines(80)); !strings.Contains(text, "m         max_rpm    2                 3          1") {
		t.Error(text)
	}
}

func TestBenchOfNothing(t *testing.T) {
	got := run(t, "bench", "m", "--url", "http://127.0.0.1:1/v1", "--admin", "127.0.0.1:1", "--calls", "2")
	if got.code != exitFailed || !strings.Contains(got.stderr, "no call was answered") {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"--for 0s", "--for 11m", "--callers 0", "--callers 10001", "--calls -1", "--output 0", "--url gopher://x"} {
		if got := run(t, append([]string{"bench", "m"}, strings.Fields(args)...)...); got.code != exitUsage || !strings.Contains(got.stderr, "must be") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestHistogram(t *testing.T) {
	ms := time.Millisecond
	got := histogram([]time.Duration{3 * ms, 4 * ms, 5 * ms, 20 * ms})
	want := []bin{{0.004, 2}, {0.008, 1}, {0.016, 0}, {0.032, 1}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v", got)
		}
	}
}
