package admin

import (
	"context"
	"database/sql"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// newReloading starts a gateway that reads the same configuration at each reload.
func newReloading(t *testing.T, yaml string) *rig {
	t.Helper()
	var r *rig
	r = newRigWith(t, yaml, Options{Reload: func(dryRun bool) ([]gateway.Changed, error) {
		cfg := gatewaytest.Config(t, yaml, "http://127.0.0.1:1")
		changed, err := r.gateway.Changes(cfg)
		if dryRun || err != nil {
			return changed, err
		}
		return changed, errors.Join(err, r.gateway.Reload(cfg))
	}})
	return r
}

// A change holds as long as the operator says: until the configuration is next read, for ever, or for a time.
func TestTerms(t *testing.T) {
	r := newReloading(t, usual)
	rpm := func(id string) int { return int(r.gateway.Projects().Limit(id).RequestsPerMinute) }
	for query, want := range map[string][2]int{ // the limit after a reload, and the term
		"":               {60, 0},
		"?until=reload":  {60, 0},
		"?until=forever": {7, 1},
		"?until=2h":      {7, 1},
	} {
		p := as[Project](t, r.want(t, 200, "PATCH", "/v1/projects/search"+query, `{"requests_per_minute": 7}`))
		if rpm("search") != 7 || (p.Term != nil) != (want[1] == 1) {
			t.Errorf("%q: %d, %+v", query, rpm("search"), p.Term)
		}
		r.want(t, 200, "POST", "/v1/reload", "")
		if rpm("search") != want[0] {
			t.Errorf("%q: after a reload it is %d, want %d", query, rpm("search"), want[0])
		}
		r.want(t, 200, "PATCH", "/v1/projects/search?until=reload", `{"requests_per_minute": 61}`) // which ends a term
		r.want(t, 200, "POST", "/v1/reload", "")
		if rpm("search") != 60 {
			t.Errorf("%q: the term has not ended", query)
		}
	}
	q := as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o?until=forever&reason=busy", `{"max_rpm": 9}`))
	if q.Term == nil || *q.Term != (Term{Until: "forever", Reason: "busy"}) {
		t.Errorf("%+v", q.Term)
	}
	r.want(t, 200, "POST", "/v1/reload", "")
	if q, _ := r.gateway.Models().Quota("gpt-4o"); q.MaxRPM != 9 {
		t.Errorf("after a reload, the quota is %+v", q)
	}
	for _, query := range []string{"?until=yesterday", "?until=0s", "?until=9999d", "?reason=a%0Ab", "?reason=" + strings.Repeat("x", 201)} {
		r.want(t, 400, "PATCH", "/v1/projects/search"+query, `{"requests_per_minute": 8}`)
	}
	r.want(t, 400, "PATCH", "/v1/gateway?until=2h", `{"mode": "shadow"}`)
	r.want(t, 400, "PATCH", "/v1/projects/search?until=2h", `{"max_wait": 5}`)
	key := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	r.want(t, 400, "PATCH", "/v1/keys/"+key.ID+"?until=2h", `{"limit": {"requests_per_minute": 5}}`)
}

// When the time of a change is over, it is undone: to what the configuration says, or to what it was. The audit log has
// both, with the reason.
func TestTermsEnd(t *testing.T) {
	r := newRig(t, usual)
	end := func(path, body string) {
		t.Helper()
		r.want(t, 200, "PATCH", path+"?until=1s&reason=a+test", body)
	}
	r.want(t, 200, "PATCH", "/v1/projects/own", `{"requests_per_minute": 3}`)
	key := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	end("/v1/projects/search", `{"requests_per_minute": 7}`)
	end("/v1/projects/own", `{"requests_per_minute": 8}`)
	end("/v1/projects/fresh", `{"requests_per_minute": 9}`)
	end("/v1/projects/small", `{"paused": true}`)
	end("/v1/quotas/gpt-4o", `{"max_rpm": 5, "paused": true}`)
	end("/v1/keys/"+key.ID, `{"paused": true}`)
	testkit.Eventually(t, "all is as before", func() bool {
		limits, state := r.gateway.Projects(), r.gateway.Controls().State()
		_, fresh := limits.Limits()["fresh"]
		quota, _ := r.gateway.Models().Quota("gpt-4o")
		return limits.Limit("search").RequestsPerMinute == 60 && limits.Limit("own").RequestsPerMinute == 3 && !fresh && quota.MaxRPM == 100 &&
			!state.Project("small").Paused && !state.Model("gpt-4o").Paused && !state.Key(key.ID).Paused
	})
	testkit.Eventually(t, "the ends are in the audit log", func() bool {
		ends := 0
		for _, e := range as[AuditList](t, r.get(t, "/v1/audit?limit=1000")).Entries {
			if e.Action == "change.end" && e.Reason == "a test" && e.Who == "gateway expiry" && e.Result == done {
				ends++
			}
		}
		return ends == 6
	})
	if p := as[Project](t, r.get(t, "/v1/projects/search")); p.Term != nil {
		t.Errorf("%+v", p.Term)
	}
}

// Of several gateways, one ends a change; a gateway that starts later ends those that were over meanwhile.
func TestTermsOfAFleet(t *testing.T) {
	all, one := newFleet(t, 3, usual)
	one.want(t, 200, "PATCH", "/v1/projects/own?until=1s", `{"requests_per_minute": 8}`)
	testkit.Eventually(t, "the change has ended everywhere", func() bool {
		for _, r := range all {
			if _, own := r.gateway.Projects().Limits()["own"]; own {
				return false
			}
		}
		return true
	})
	ends := func() (n int) {
		for _, e := range as[AuditList](t, one.want(t, 200, "GET", "/v1/audit", "")).Entries {
			if e.Action == "change.end" {
				n++
			}
		}
		return n
	}
	testkit.Eventually(t, "the end is recorded", func() bool { return ends() > 0 })
	if n := ends(); n != 1 {
		t.Errorf("it was ended %d times", n)
	}
}

// The end of a change is not lost if the store fails, or the gateway dies, in the midst of it: the change ends with the
// next try. What an operator has changed meanwhile stays.
func TestTermsEndAfterAFault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+file, 1))
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, body, setting string }{
		{"the limit of a project", "/v1/projects/search", `{"requests_per_minute": 7}`, "project/search"},
		{"the term of a project", "/v1/projects/search", `{"requests_per_minute": 7}`, "control/term/project/search"},
		{"a project that is not configured", "/v1/projects/own", `{"requests_per_minute": 7}`, "project/own"},
		{"a pause", "/v1/projects/small", `{"paused": true}`, "control/project/small"},
		{"the quota of a model", "/v1/quotas/gpt-4o", `{"max_rpm": 5}`, "control/term/model/gpt-4o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.want(t, 200, "PATCH", c.path+"?until=1h&reason=a+test", c.body)
			due := map[string]control.Term{}
			r.gateway.Controls().State().Terms(func(key string, t control.Term) { due[key] = t })
			exec("CREATE TRIGGER put BEFORE INSERT ON settings WHEN CAST(new.name AS TEXT) = '" + c.setting + "' BEGIN SELECT RAISE(ABORT, 'not today'); END")
			exec("CREATE TRIGGER remove BEFORE DELETE ON settings WHEN CAST(old.name AS TEXT) = '" + c.setting + "' BEGIN SELECT RAISE(ABORT, 'not today'); END")
			for key, term := range due {
				if err := r.endTerm(t.Context(), key, term); err == nil {
					t.Fatalf("%s has ended although the store has failed", key)
				}
			}
			exec("DROP TRIGGER put")
			exec("DROP TRIGGER remove")
			for key, term := range due {
				if err := r.endTerm(t.Context(), key, term); err != nil {
					t.Fatal(err)
				}
			}
			state := r.gateway.Controls().State()
			state.Terms(func(key string, _ control.Term) { t.Errorf("%s has a term", key) })
			quota, _ := r.gateway.Models().Quota("gpt-4o")
			_, own := r.gateway.Projects().Limits()["own"]
			if n := r.gateway.Projects().Limit("search").RequestsPerMinute; n != 60 || own || quota.MaxRPM != 100 || state.Project("small").Paused {
				t.Errorf("the change has not ended: %d, %v, %d, %v", n, own, quota.MaxRPM, state.Project("small").Paused)
			}
		})
	}
	t.Run("a change that a gateway has died before making", func(t *testing.T) {
		for _, name := range []string{"search", "own"} {
			r.want(t, 200, "PATCH", "/v1/projects/"+name+"?until=1h", `{"requests_per_minute": 7}`)
			e := edit[project.Limit]{
				subject: name, kind: control.ProjectTerm,
				held: func(_, after project.Limit, t *control.Term) {
					t.Limit, t.LimitBefore = &after, r.ownLimit(name, after)
				},
				apply: func(context.Context, project.Limit, project.Limit) error { panic("the gateway dies") },
			}
			func() {
				defer func() { recover() }()
				applyWithTerm(t.Context(), r.Admin, e, project.Limit{}, project.Limit{RequestsPerMinute: 8}, askedTerm{until: time.Now().Add(2 * time.Hour).Truncate(time.Second).UTC()})
			}()
			if err := r.endTerm(t.Context(), control.ProjectTerm+name, r.gateway.Controls().State().Term(control.ProjectTerm, name)); err != nil {
				t.Fatal(err)
			}
		}
		_, own := r.gateway.Projects().Limits()["own"]
		if n := r.gateway.Projects().Limit("search").RequestsPerMinute; n != 60 || own {
			t.Errorf("the earlier change has not ended: %d, %v", n, own)
		}
	})
	r.want(t, 200, "PATCH", "/v1/projects/search?until=1h", `{"requests_per_minute": 7}`)
	old := r.gateway.Controls().State().Term(control.ProjectTerm, "search")
	r.want(t, 200, "PATCH", "/v1/projects/search?until=2h", `{"requests_per_minute": 8}`)
	if err := r.endTerm(t.Context(), "project/search", old); err != nil || r.gateway.Projects().Limit("search").RequestsPerMinute != 8 {
		t.Errorf("a later change was undone: %v", err)
	}
	ends := 0
	for _, e := range as[AuditList](t, r.get(t, "/v1/audit?limit=1000")).Entries {
		if e.Action == "change.end" {
			ends++
		}
	}
	if ends != 7 {
		t.Errorf("the audit log has %d ends, want 7", ends)
	}
}

// The term of a change that ends is stored before the change is made: a gateway that dies in between leaves no change
// that never ends. If the change fails, the term is as it was.
func TestTermsAreStoredFirst(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 200, "PATCH", "/v1/projects/search?until=forever&reason=first", `{"requests_per_minute": 7}`)
	term := func() control.Term { return r.gateway.Controls().State().Term(control.ProjectTerm, "search") }
	request := httptest.NewRequest("PATCH", "/v1/projects/search?until=2h&reason=second", nil)
	var during control.Term
	_, _, err := perform(r.Admin, request, edit[project.Limit]{
		action: "project.change", subject: "search", kind: control.ProjectTerm,
		now:  func() project.Limit { return r.gateway.Projects().Limit("search") },
		next: func(before project.Limit) (project.Limit, error) { return project.Limit{RequestsPerMinute: 9}, nil },
		apply: func(context.Context, project.Limit, project.Limit) error {
			during = term()
			return errors.New("the store is lost")
		},
		held: func(_, after project.Limit, t *control.Term) { t.Limit = &after },
	})
	if err == nil || during.Reason != "second" || during.Until.IsZero() {
		t.Errorf("while the change is made, the term is %+v; %v", during, err)
	}
	if after := term(); after.Reason != "first" || !after.Until.IsZero() {
		t.Errorf("after a change that has failed, the term is %+v", after)
	}
}
