package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// The audit log of a gateway, and of its file, says what was changed.
func TestAudit(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	state := filepath.Join(t.TempDir(), "state.db")
	serveWith(t, "--state", state, "--config", withMock(t, "keys: required\n"))
	for _, project := range []string{"acme/search", "other"} {
		if got := run(t, "key", "create", project); got.code != exitFine {
			t.Fatalf("%+v", got)
		}
	}
	for _, from := range [][]string{nil, {"--file", state + ".audit.jsonl"}} {
		got := run(t, append([]string{"audit", "--subject", "acme"}, from...)...)
		if got.code != exitFine || strings.Count(got.stdout, "key.create") != 1 || !strings.Contains(got.stdout, "project: none → acme/search") || strings.Contains(got.stdout, "other") {
			t.Errorf("%v: %+v", from, got)
		}
		var all []admin.Entry
		if got := run(t, append([]string{"audit", "--all", "--json", "--since", "1h", "--action", "key."}, from...)...); json.Unmarshal([]byte(got.stdout), &all) != nil || len(all) != 4 || all[0].Result != "intended" {
			t.Errorf("%+v", got)
		}
		if got := run(t, append([]string{"audit", "-n", "1"}, from...)...); !strings.Contains(got.stdout, "other") || strings.Contains(got.stdout, "acme") {
			t.Errorf("%+v", got)
		}
	}
	if got := run(t, "audit", "--action", "quota."); got.stdout != "no matching changes\n" {
		t.Errorf("%+v", got)
	}
	if got := run(t, "audit", "--file", "none.jsonl"); got.code != exitFailed || !strings.Contains(got.stderr, "none.jsonl") {
		t.Errorf("%+v", got)
	}
}

// In 80 columns, what has changed stands below the change.
func TestAuditLines(t *testing.T) {
	at := time.Date(2026, 11, 16, 3, 0, 1, 0, time.UTC)
	entry := func(text string) (e admin.Entry) {
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		e.Time = at
		return e
	}
	got := shown(auditLines([]admin.Entry{
		entry(`{"action":"project.change","subject":"acme","who":"token 10.1.2.3:5","result":"done","before":{"limit":{"requests_per_minute":100,"weight":3}},"after":{"limit":{"weight":3},"paused":true}}`),
		entry(`{"action":"config.reload","who":"loopback 127.0.0.1:50000","result":"failed","error":"gateway.yaml:1:9: listen: \u001b[2J"}`),
	}, 80))
	want := `
time                 action          of    by
2026-11-16 03:00:01  project.change  acme  token 10.1.2.3:5
    limit.requests_per_minute: 100 → none, paused: none → true
2026-11-16 03:00:01  config.reload         loopback 127.0.0.1:50000
    failed gateway.yaml:1:9: listen: \x1b[2J`
	if got != want {
		t.Errorf("%s\nwant:%s", got, want)
	}
}

// Half a line, as a gateway leaves that was killed, does no harm.
func TestAuditFileWithHalfALine(t *testing.T) {
	path := file(t, "audit.jsonl", `{"seq":1,"action":"key.create","result":"done"}`+"\n"+`{"seq":2,"act`)
	if got := run(t, "audit", "--file", path); got.code != exitFine || strings.Count(got.stdout, "key.create") != 1 {
		t.Errorf("%+v", got)
	}
	os.WriteFile(path, nil, 0o600)
	if got := run(t, "audit", "--file", path); got.stdout != "no matching changes\n" {
		t.Errorf("%+v", got)
	}
}

// A reload reads the file anew; one with a fault changes nothing.
func TestReload(t *testing.T) {
	path := file(t, "gateway.yaml", "projects: {a: {weight: 2}, b: {requests_per_minute: 6}}")
	serveWith(t, "--state", "memory", "--config", path)
	if got := run(t, "reload"); got != (outcome{exitFine, "the gateway has read its configuration again: no limit changes\n", ""}) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "reload", "--json"); strings.TrimSpace(got.stdout) != "{\n  \"warnings\": [],\n  \"changes\": []\n}" {
		t.Errorf("%+v", got)
	}
	run(t, "project", "set", "a", "weight=9", "tokens_per_day=100")
	os.WriteFile(path, []byte("projects: {a: {weight: 2}, b: {requests_per_minute: 7}}"), 0o600)
	table := `of         limit                before     after
project a  tokens_per_day       100     →  none
    was set at run time
           weight               9       →  2
project b  requests_per_minute  6       →  7
`
	t.Setenv("COLUMNS", "60")
	for _, args := range [][]string{{"reload", "--dry-run"}, {"reload"}} {
		if got := run(t, args...); got.code != exitFine || !strings.HasPrefix(got.stdout, table) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	t.Setenv("COLUMNS", "100")
	if got := run(t, "audit", "--action", "config."); !strings.Contains(got.stdout, "project.a.weight: 9 → 2") {
		t.Errorf("%+v", got)
	}
	os.WriteFile(path, []byte("project: {}"), 0o600)
	if got := run(t, "reload"); got.code != exitFailed || !strings.Contains(got.stderr, "gateway.yaml:1:1") {
		t.Errorf("%+v", got)
	}
}
