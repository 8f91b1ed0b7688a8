package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/telemetry"
)

// These tests find every row of the table of kinds at every door, also a row that is new.

// numberOf returns a limit of a kind that no other kind has: of dollars, whole ones.
func numberOf(k kind.Kind) int64 { return 100 + int64(k) }

// settingsOf returns the limits of an owner's kinds as text, such as "max_rpm: 100".
func settingsOf(owner kind.Owner, between string) (list []string) {
	for _, k := range kind.Of(owner) {
		list = append(list, fmt.Sprintf("%s%s%d", k.Setting(), between, numberOf(k)))
	}
	return list
}

// wantAll checks that a struct has the limits that settingsOf sets.
func wantAll[T any](t *testing.T, what string, fields *kind.Fields[T], got *T, owner kind.Owner) {
	t.Helper()
	for _, k := range kind.Of(owner) {
		if n := fields.Get(got, k); n != numberOf(k)*k.Unit().Parts() {
			t.Errorf("%s: %s is %d", what, k, n)
		}
	}
}

// limitsOfAll returns limits of every kind.
func limitsOfAll() (limit project.Limit, quota ratelimit.ModelQuota) {
	for _, k := range kind.Of(kind.Project) {
		limitFields.Set(&limit, k, numberOf(k)*k.Unit().Parts())
	}
	for _, k := range kind.Of(kind.Model) {
		quotaFields.Set(&quota, k, numberOf(k))
	}
	return limit, quota
}

// yamlOfAll is a configuration with limits of every kind.
func yamlOfAll() string {
	return fmt.Sprintf("providers: {openai: {models: {m: {%s}}}}\nprojects: {acme: {%s}}\nruns: {%s}\n",
		strings.Join(settingsOf(kind.Model, ": "), ", "), strings.Join(settingsOf(kind.Project, ": "), ", "), strings.Join(settingsOf(kind.Run, ": "), ", "))
}

func TestTheConfigurationHasEveryKind(t *testing.T) {
	c, err := config.Parse("gateway.yaml", []byte(yamlOfAll()))
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, "the project", limitFields, &c.Projects["acme"].Limit, kind.Project)
	wantAll(t, "the runs", runFields, &c.Runs, kind.Run)
	of := c.Providers["openai"]
	m, _ := of.Find("m")
	wantAll(t, "the model", quotaFields, &m.Quota, kind.Model)
	got := run(t, "check", file(t, "gateway.yaml", yamlOfAll()))
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			if want := limitText(k, numberOf(k)*k.Unit().Parts(), owner != kind.Project); !strings.Contains(got.stdout, want) {
				t.Errorf("check does not say %q:\n%s%s", want, got.stdout, got.stderr)
			}
		}
	}
}

// A gateway takes every kind by its commands, which use the admin API, and shows it.
func TestTheAdminAPIAndItsCommandsHaveEveryKind(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {acme: {}}"))
	do := func(to any, args ...string) {
		t.Helper()
		if got := run(t, append(args, "--json")...); got.code != exitFine || json.Unmarshal([]byte(got.stdout), to) != nil {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	var p admin.Project
	do(&p, append([]string{"project", "set", "acme"}, settingsOf(kind.Project, "=")...)...)
	wantAll(t, "the project", limitFields, &p.Limit, kind.Project)
	var m admin.Model
	do(&m, append([]string{"model", "set", "m"}, settingsOf(kind.Model, "=")...)...)
	wantAll(t, "the model", quotaFields, &m.Quota.ModelQuota, kind.Model)
	var flags []string
	for _, k := range kind.Of(kind.Project) {
		flags = append(flags, fmt.Sprintf("--%s=%d", k.Flag(), numberOf(k)))
	}
	if got := run(t, append([]string{"key", "create", "acme"}, flags...)...); got.code != exitFine {
		t.Fatalf("%+v", got)
	}
	var made []keys.Key
	do(&made, "key", "list")
	wantAll(t, "the key", limitFields, &made[0].Limit, kind.Project)

	var s admin.State
	do(&s, "status")
	for _, k := range kind.Of(kind.Project) {
		shown := slices.ContainsFunc(s.Projects[0].Windows, func(w admin.Window) bool { return w.Name == k.Name() })
		if row := strings.Join(projectRow(s.Projects[0]), " "); !shown && k != kind.ProjectConcurrent || !strings.Contains(row, k.Setting()) {
			t.Errorf("status does not show %s: %s", k, row)
		}
	}
	m.Waiting = 1 // a model of which nothing is used has no row
	columns := shown(modelLines([]admin.Model{m}, 400))
	for _, k := range kind.Of(kind.Model) {
		if _, ok := m.Usage.Used[k.Name()]; !ok || !strings.Contains(columns, k.Name()) {
			t.Errorf("status does not show %s: %+v\n%s", k, m.Usage, columns)
		}
	}
}

func TestTheOpenAPIDocumentAndTheDashboardHaveEveryKind(t *testing.T) {
	text, err := os.ReadFile("../../internal/gateway/admin/openapi.json")
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Enum       []string
			}
		}
	}
	if err != nil || json.Unmarshal(text, &doc) != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	dashboard.New("test").ServeHTTP(w, httptest.NewRequest("GET", "/assets/kinds.js", nil))
	for owner, schemas := range map[kind.Owner][]string{kind.Model: {"Quota", "QuotaPatch"}, kind.Project: {"Limit", "LimitPatch", "ProjectPatch"}, kind.Run: nil} {
		for _, k := range kind.Of(owner) {
			for _, name := range schemas {
				if doc.Components.Schemas[name].Properties[k.Setting()] == nil {
					t.Errorf("%s of the OpenAPI document has no %s: run make docs", name, k.Setting())
				}
			}
			if !slices.Contains(doc.Components.Schemas["LimitName"].Enum, k.Name()) {
				t.Errorf("LimitName of the OpenAPI document has no %s: run make docs", k)
			}
			if dashboard.Included && !strings.Contains(w.Body.String(), fmt.Sprintf(`"name":%q`, k.Name())) {
				t.Errorf("the dashboard does not know %s", k)
			}
		}
	}
}

// A call that a limit denies names it: in the decision, in the event and in the metric of it.
func TestADenialNamesEveryKind(t *testing.T) {
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			metrics := prometheus.NewRegistry()
			observer, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{Registerer: metrics})
			if err != nil {
				t.Fatal(err)
			}
			var named, reason string
			if owner == kind.Model {
				named, reason = deniedByModel(t, k, observer)
			} else {
				named, reason = deniedByProject(t, k, observer)
			}
			if named != k.Name() || !strings.Contains(reason, k.Unit().Words()) && !strings.Contains(reason, "$") {
				t.Errorf("%s: the denial is by %q: %s", k, named, reason)
			}
			all, err := metrics.Gather()
			if text := fmt.Sprint(all); err != nil || !strings.Contains(text, fmt.Sprintf(`name:"limit" value:%q`, k.Name())) && !strings.Contains(text, fmt.Sprintf(`name:"limit"  value:%q`, k.Name())) {
				t.Errorf("%s: no metric has it as a label: %v\n%s", k, err, text)
			}
		}
	}
}

// deniedByModel returns the limit that denies the second of two calls to a model that has one limit, of 1.
func deniedByModel(t *testing.T, k kind.Kind, o event.Observer) (limit, reason string) {
	t.Helper()
	var quota ratelimit.ModelQuota
	quotaFields.Set(&quota, k, 1)
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: filepath.Join(t.TempDir(), "state.yaml"), Quotas: map[string]ratelimit.ModelQuota{"m": quota}, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	if k == kind.MaxEnqueuedTokens { // which limits batches alone
		l, err := rl.NewProjects(project.Config{Default: &project.Limit{}})
		if err != nil {
			t.Fatal(err)
		}
		return deniedSecond(t, l, project.Call{Project: "p", Model: "m", Estimated: 1, Batch: true})
	}
	one := ratelimit.Tokens{Input: 1, Output: 1}
	if k.Unit() == kind.Tokens {
		one.Output = 0
	}
	rl.TryAcquireTokens("m", one)
	_, d := rl.TryAcquireTokens("m", one)
	return d.Limit, d.Reason()
}

// deniedByProject returns the limit that denies the second of two calls of a project, or of a run, with one limit.
func deniedByProject(t *testing.T, k kind.Kind, o event.Observer) (limit, reason string) {
	t.Helper()
	cfg := project.Config{Default: &project.Limit{}, Observer: o}
	if k.Owner() == kind.Run {
		runs := config.Runs{}
		runFields.Set(&runs, k, 1)
		cfg.Runs = project.RunLimit(runs)
	} else {
		limitFields.Set(cfg.Default, k, 1)
	}
	l, err := project.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := project.Call{Project: "p", Run: "r", Estimated: 1, Dollars: 1}
	for i := range c.Units {
		c.Units[i] = 1
	}
	return deniedSecond(t, l, c)
}

// deniedSecond returns the limit that denies the second of two calls.
func deniedSecond(t *testing.T, l *project.Limiter, c project.Call) (limit, reason string) {
	t.Helper()
	for range 2 {
		_, d, err := l.Take(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		limit, reason = d.Limit, d.Reason()
	}
	return limit, reason
}

// A limit of every kind survives a restart, in every kind of store.
func TestEveryKindSurvivesARestart(t *testing.T) {
	limit, quota := limitsOfAll()
	redis := redistest.New(t)
	for backend, path := range map[string]string{
		ratelimit.BackendYAML: filepath.Join(t.TempDir(), "state.yaml"), ratelimit.BackendSQLite: filepath.Join(t.TempDir(), "state.db"), ratelimit.BackendRedis: redis.PatientURL(),
	} {
		for begun := range 2 {
			rl, err := ratelimit.NewWithConfig(ratelimit.Config{Backend: backend, FilePath: path, NoDefaults: true})
			if err != nil {
				t.Fatal(err)
			}
			projects, err := rl.NewProjects(project.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if begun == 0 {
				rl.SetQuota("m", quota)
				if err := projects.SetLimit("acme", limit); err != nil {
					t.Fatal(err)
				}
			} else if err := rl.Load(); err != nil {
				t.Fatal(err)
			}
			got := rl.Quotas()["m"]
			wantAll(t, backend+": the model", quotaFields, &got, kind.Model)
			if of := projects.Limit("acme"); begun == 0 || backend != ratelimit.BackendYAML { // the YAML file keeps quotas alone
				wantAll(t, backend+": the project", limitFields, &of, kind.Project)
			}
			if err := rl.Persist(); err != nil {
				t.Fatal(err)
			}
			projects.Close()
			rl.Close()
		}
	}
}
