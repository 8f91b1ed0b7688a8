package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// Fields have the names of the configuration; what is wrong with one is reported before a gateway is asked.
func TestPatch(t *testing.T) {
	got, err := projectFields.patch([]string{"requests-per-minute=1_000", "dollars_per_day=2.50", "min_share=10%", "max_wait=90s", "models=a*,b", "dedicated=true", "fit=false", "fit_min=1_00", "unknown_usage=seen", "resets.zone=Europe/Berlin"}, []string{"weight"})
	want := admin.Patch{"requests_per_minute": int64(1000), "dollars_per_day": 2.5, "min_share": "10%", "max_wait": "90s", "models": []string{"a*", "b"}, "dedicated": true, "fit": false, "fit_min": int64(100), "unknown_usage": "seen", "resets": map[string]any{"zone": "Europe/Berlin"}, "weight": nil}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := keyFields.patch([]string{"requests_per_minute=5", "models=none"}, nil); err != nil || !reflect.DeepEqual(keyPatch(got), admin.Patch{"limit": map[string]any{"requests_per_minute": int64(5)}, "models": nil}) {
		t.Errorf("%v, %v", got, err)
	}
	for arg, want := range map[string]string{
		"requests_per_minut=5":     "did you mean requests_per_minute?",
		"paused=true":              "there is no field \"paused\"",
		"requests_per_minute":      "has no value",
		"requests_per_minute=":     "has no value",
		"requests_per_minute=many": "it must be a whole number",
		"requests_per_minute=0":    "none removes a limit",
		"max_concurrent=0":         "the command pause stops all calls",
		"requests_per_minute=1.5":  "it must be a whole number",
		"dedicated=maybe":          "it must be true, false or none",
		"\x1b[2J=1":                `there is no field "\x1b[2J"`,
	} {
		if _, err := projectFields.patch([]string{arg}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if _, err := projectFields.patch(nil, nil); err == nil || !strings.Contains(err.Error(), "nothing to set") {
		t.Error(err)
	}
}

// A project is set field by field, paused, resumed and reset, at a real gateway.
func TestProjectCommands(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	t.Setenv("COLUMNS", "80")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {acme: {requests_per_minute: 5, tokens_per_month: 90000, max_wait: 0s}}"))
	do := func(args string) outcome {
		t.Helper()
		got := run(t, strings.Fields(args)...)
		if got.code != exitFine {
			t.Errorf("%s: %+v", args, got)
		}
		return got
	}
	if got := do("project set acme requests_per_minute=50 --dry-run"); !strings.Contains(got.stdout, "requests_per_minute  5    →  50") {
		t.Errorf("%+v", got)
	}
	if got := do("project set acme max_wait=90s --dry-run"); !strings.Contains(got.stdout, "max_wait      as configured  →  1m30s") {
		t.Errorf("%+v", got)
	}
	if got := do("project set acme models=any --dry-run"); !strings.Contains(got.stdout, `models        none of its own  →  ["any"]`) {
		t.Errorf("%+v", got)
	}
	if got := do("project set acme max_wait=0s"); strings.Contains(got.stderr, "If the configuration") {
		t.Errorf("%+v", got)
	}
	got := do("project set acme requests_per_minute=2")
	if got.stdout != "project acme is changed\n" || !strings.Contains(got.stderr, "requests_per_minute  5    →  2") || !strings.Contains(got.stderr, "If the configuration names the project") {
		t.Errorf("%+v", got)
	}
	var p admin.Project
	if got := do("project set acme --remove tokens_per_month --json"); json.Unmarshal([]byte(got.stdout), &p) != nil || p.Limit.RequestsPerMinute != 2 || p.Limit.TokensPerMonth != 0 || !strings.Contains(got.stderr, "This lifts limits: tokens_per_month.") {
		t.Errorf("%+v", got)
	}
	if got := do("project set acme requests_per_minute=2"); got.stdout != "project acme has these values already: nothing changes\n" {
		t.Errorf("%+v", got)
	}
	var preview admin.Preview
	if got := do("project set acme weight=7 --dry-run --json"); json.Unmarshal([]byte(got.stdout), &preview) != nil || len(preview.Changed) != 1 {
		t.Errorf("%+v", got)
	}
	for range 3 {
		s.ask(t, "acme", "any")
	}
	if got := do("project list"); !strings.Contains(got.stdout, "acme") || !strings.Contains(got.stdout, "minute 2 / 2") || !strings.Contains(got.stdout, "100%") {
		t.Errorf("%+v", got)
	}
	do("project reset acme")
	do("project pause acme --yes")
	if status := s.ask(t, "acme", "any"); status != http.StatusTooManyRequests {
		t.Errorf("a call of a paused project: %d", status)
	}
	for _, c := range []string{"status", "project list"} {
		if got := do(c); !strings.Contains(got.stdout, "paused") {
			t.Errorf("%+v", got)
		}
	}
	do("project resume acme")
	if status := s.ask(t, "acme", "any"); status != http.StatusOK {
		t.Errorf("a call of a resumed project: %d", status)
	}
	for args, want := range map[string]string{
		"project pause acm":                "the gateway knows no project \"acm\": did you mean acme?",
		"project reset nothing-like-it":    "the gateway knows no project \"nothing-like-it\"",
		"project set acme min_share=200%":  "it must be from 0% to 100%",
		"project set acme weight=99999999": "weight",
	} {
		if got := run(t, strings.Fields(args)...); got.code != exitFailed || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(t, "project", "list", "--sort", "colour"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
	for args, want := range map[string]string{"project pause": "acme", "project set": "acme", "project set acme": "weight=", "status": "acme", "usage --project": "acme", "key list --project": "acme"} {
		if got := run(t, append(append([]string{"__complete"}, strings.Fields(args)...), "")...); !strings.Contains(got.stdout, want+"\n") {
			t.Errorf("completion of %s: %+v", args, got)
		}
	}
}

// A shell could run a part of a name that it completes, or take the name for a flag, and clients choose names.
func TestCompletionsAreHarmless(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "defaults: {max_wait: 0s}\n"))
	for _, project := range []string{"team-1/a.b@c", "$(id)a", "$(id)b", "`id`", "--token=x", "a;id", "'", "~root"} {
		s.ask(t, project, "any")
	}
	if got := run(t, "__complete", "project", "pause", ""); !strings.HasPrefix(got.stdout, "team-1\nteam-1/a.b@c\n:4\n") {
		t.Errorf("%+v", got)
	}
}

func TestModelCommands(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	t.Setenv("COLUMNS", "80")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "defaults: {max_wait: 0s}\n"))
	for _, args := range []string{"model set m max_rpm=7 max_tpm=none", "model pause m", "model reset m"} {
		if got := run(t, strings.Fields(args)...); got.code != exitFine {
			t.Fatalf("%s: %+v", args, got)
		}
	}
	if status := s.ask(t, "", "any"); status != http.StatusTooManyRequests {
		t.Errorf("a call of a paused model: %d", status)
	}
	if got := run(t, "model", "list"); !strings.Contains(got.stdout, "paused by an operator") || !strings.Contains(got.stdout, "max_rpm") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "model", "list", "-n", "2"); strings.Count(got.stdout, "\n") != 4 || !strings.HasSuffix(got.stdout, "(2 of 15)\n") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "model", "resume", "m"); got.stdout != "model m is resumed\n" {
		t.Errorf("%+v", got)
	}
	if status := s.ask(t, "", "any"); status != http.StatusOK {
		t.Errorf("a call of a resumed model: %d", status)
	}
	var all []admin.Model
	if got := run(t, "model", "list", "--json"); json.Unmarshal([]byte(got.stdout), &all) != nil || len(all) == 0 {
		t.Errorf("%+v", got)
	}
	for _, m := range all {
		if m.Name == "m" && (m.Quota.MaxRPM != 7 || m.Quota.MaxTPM != 0) {
			t.Errorf("%+v", m.Quota)
		}
	}
	if got := run(t, "model", "pause", "gpt-4"); got.code != exitFailed || !strings.Contains(got.stderr, "did you mean gpt-4o?") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "__complete", "model", "pause", ""); !strings.Contains(got.stdout, "\nm\n") {
		t.Errorf("%+v", got)
	}
}

func TestKeyChanges(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "keys: required\ndefaults: {max_wait: 0s}\n"))
	secret := strings.TrimSpace(run(t, "key", "create", "search").stdout)
	run(t, "key", "create", "other")
	id := strings.Split(secret, "-")[1]
	if got := run(t, "key", "change", id, "weight=3"); got.code != exitUsage || !strings.Contains(got.stderr, "there is no field \"weight\"") {
		t.Errorf("%+v", got)
	}
	var k keys.Key
	if got := run(t, "key", "change", id, "requests_per_minute=5", "models=m", "--json"); json.Unmarshal([]byte(got.stdout), &k) != nil || k.Limit.RequestsPerMinute != 5 || len(k.Models) != 1 {
		t.Errorf("%+v", got)
	}
	run(t, "key", "pause", id)
	if status := s.ask(t, "", secret); status != http.StatusTooManyRequests {
		t.Errorf("a call with a paused key: %d", status)
	}
	if got := run(t, "key", "list", "--project", "search"); !strings.Contains(got.stdout, "paused") || strings.Contains(got.stdout, "other") {
		t.Errorf("%+v", got)
	}
	run(t, "key", "resume", id)
	if status := s.ask(t, "", secret); status != http.StatusOK {
		t.Errorf("a call with a resumed key: %d", status)
	}
	if got := run(t, "key", "revoke", id, "--json"); got.code != exitFine || !strings.Contains(got.stdout, id) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "key", "change", id, "models=m"); got.code != exitFailed || !strings.Contains(got.stderr, "no such key") {
		t.Errorf("%+v", got)
	}
}

// A preview names the fields of a key's limit as the command line does.
func TestPreviewNamesFieldsAsTheyAreSet(t *testing.T) {
	lines := shown(previewLines("key k", admin.Preview{Changed: []admin.FieldChange{{Field: "limit.max_concurrent", After: 2.0}}}, 80))
	if !strings.Contains(lines, "\nmax_concurrent  none  →  2") {
		t.Error(lines)
	}
}
