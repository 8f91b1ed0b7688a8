package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// The mode of a gateway is shown and set: in shadow, nothing is denied.
func TestMode(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {acme: {requests_per_minute: 1, max_wait: 0s}}"))
	if got := run(t, "mode"); got.stdout != "enforce\n" {
		t.Errorf("%+v", got)
	}
	s.ask(t, "acme", "any")
	if status := s.ask(t, "acme", "any"); status != http.StatusTooManyRequests {
		t.Errorf("status %d", status)
	}
	if got := run(t, "mode", "shadow"); got.stdout != "the mode of the gateway is shadow\n" {
		t.Errorf("%+v", got)
	}
	if status := s.ask(t, "acme", "any"); status != http.StatusOK {
		t.Errorf("in shadow: %d", status)
	}
	if got := run(t, "status"); !strings.Contains(got.stdout, "\nSHADOW: nothing is denied\n") || !strings.Contains(got.stdout, "shadow: its limits deny nothing") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "mode", "shadwo"); got.code != exitUsage || !strings.Contains(got.stderr, "enforce or shadow") {
		t.Errorf("%+v", got)
	}
}

func TestWaiting(t *testing.T) {
	serveWith(t, "--state", "memory")
	if got := run(t, "waiting"); got != (outcome{exitFine, "no call waits\n", ""}) {
		t.Errorf("%+v", got)
	}
	var list admin.WaitingList
	if got := run(t, "waiting", "--json", "--project", "acme"); json.Unmarshal([]byte(got.stdout), &list) != nil || list.Waiting == nil {
		t.Errorf("%+v", got)
	}
	now := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	got := shown(waitingLines(admin.WaitingList{More: true, Waiting: []admin.Waiting{
		{ID: "gw_1", Project: "acme/search", Model: "gpt-6-luna", Waited: 2.25, Limit: "max_tpm", Owner: "gpt-6-luna", Position: 1, PassesAt: now.Add(3 * time.Second), Until: now.Add(time.Minute), Tokens: 1200},
		{ID: "gw_2", Model: "gpt-6-luna\x1b", Waited: 1, Position: 2, Until: now.Add(-time.Second)},
		{ID: "gw_3", Project: "chat", Model: "gpt-6-luna", Waited: 1, Limit: "max_concurrent", Position: 3},
	}}, now, 80))
	want := `
project      model           waits  for               place  passes in  gives up
acme/search  gpt-6-luna      2.2 s  max_tpm of gpt-…      1      3.0 s    60.0 s
(none)       gpt-6-luna\x1b  1.0 s  earlier calls         2          -     0.0 s
chat         gpt-6-luna      1.0 s  max_concurrent,…      3          -         -
(and more)`
	if got != want {
		t.Errorf("%s\nwant:%s", got, want)
	}
}
