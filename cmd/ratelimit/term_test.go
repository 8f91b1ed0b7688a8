package main

import (
	"encoding/json"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// For how long a change of a project or a model holds, and why it was made, reach the gateway: they are in its audit log. A
// change of that alone is one, too.
func TestTermsOfChanges(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {acme: {}}\n"))
	for _, command := range []string{
		"project set acme requests_per_minute=5 --until 2h --reason one",
		"project set acme requests_per_minute=5 --until forever --reason two",
		"project pause acme --until 30m --reason three --yes",
		"model set m max_rpm=7 --until 1h --reason four",
		"model pause m --until 1h --reason five --yes",
	} {
		if got := run(t, strings.Fields(command)...); got.code != exitFine {
			t.Fatalf("%s: %+v", command, got)
		}
	}
	var entries []admin.Entry
	if got := run(t, "audit", "--json"); json.Unmarshal([]byte(got.stdout), &entries) != nil {
		t.Fatalf("%+v", got)
	}
	for i, reason := range []string{"one", "two", "three", "four", "five"} {
		if i >= len(entries) || entries[i].Reason != reason || entries[i].Until.IsZero() != (reason == "two") {
			t.Fatalf("%s: %+v", reason, entries)
		}
	}
	if got := run(t, "audit"); !strings.Contains(got.stdout, "because: one") || !strings.Contains(got.stdout, "until 20") {
		t.Error(got.stdout)
	}
	if got := run(t, "project", "set", "acme", "requests_per_minute=6", "--until", "soon"); got.code == exitFine || !strings.Contains(got.stderr, "until is") || strings.Contains(got.stderr, "→") {
		t.Errorf("%+v", got)
	}
}
