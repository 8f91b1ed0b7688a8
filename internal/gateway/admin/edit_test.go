package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Two changes that an operator types in a hurry: 0 in order to stop a project, and one limit in order to
// lower it. Neither lifts a limit.
func TestMistakesOfAnOperatorLiftNothing(t *testing.T) {
	r := newRig(t, usual)
	before := r.gateway.Projects().Limit("search")
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"PUT", `{"requests_per_minute": 0}`, 409, `"lifted":["requests_per_minute","tokens_per_month"]`},
		{"PUT", `{"requests_per_minute": 10}`, 409, `"lifted":["tokens_per_month"]`},
		{"PUT", `{}`, 409, "PATCH changes only the fields that it has; ?replace=true"},
		{"PATCH", `{"requests_per_minute": 0}`, 400, "requests_per_minute: 0 is not allowed: leave it empty (null) for no limit, or pause the project"},
		{"PATCH", `{"dollars_per_day": 0.0}`, 400, "dollars_per_day: 0 is not allowed: leave it empty (null) for no limit"},
	} {
		if a := r.want(t, c.status, c.method, "/v1/projects/search", c.body); !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s: %s", c.method, c.body, a.text)
		}
	}
	testkit.Equal(t, "the limit", before, r.gateway.Projects().Limit("search"))
	p := as[Project](t, r.want(t, 200, "PATCH", "/v1/projects/search", `{"requests_per_minute": 10}`))
	testkit.Equal(t, "one field lower", project.Limit{RequestsPerMinute: 10, TokensPerMonth: 1_000_000, Weight: 3}, p.Limit)
	p = as[Project](t, r.want(t, 200, "PUT", "/v1/projects/search?replace=true", `{"requests_per_minute": 10}`))
	testkit.Equal(t, "what was lifted on purpose", []string{"tokens_per_month"}, p.Lifted)
	testkit.Equal(t, "the limit that replaces the other", project.Limit{RequestsPerMinute: 10}, p.Limit)
}

func TestPatchOfAProject(t *testing.T) {
	r := newRig(t, usual+"defaults: {requests_per_minute: 7, requests_per_day: 70}\n")
	const path = "/v1/projects/acme/other"
	for _, c := range []struct {
		path, body string
		want       project.Limit
	}{
		{"new", `{"requests_per_minute": 5}`, project.Limit{RequestsPerMinute: 5, RequestsPerDay: 70, Weight: 1}}, // the rest as the default says
		{"new", `{"requests_per_day": null}`, project.Limit{RequestsPerMinute: 5, Weight: 1}},
		{"new", `{}`, project.Limit{RequestsPerMinute: 5, Weight: 1}},
		{"acme/search", `{"tokens_per_day": 10, "resets": {"zone": "Europe/Berlin", "at": "06:00"}, "priority": -3, "weight": 4, "max_share": "50%", "min_share": "5%"}`,
			project.Limit{RequestsPerMinute: 7, RequestsPerDay: 70, TokensPerDay: 10, Priority: -3, Weight: 4, MaxShare: 50, MinShare: 5}},
		{"acme%2Fsearch", `{"resets": {"at": null}, "min_share": null, "priority": null}`, project.Limit{RequestsPerMinute: 7, RequestsPerDay: 70, TokensPerDay: 10, Weight: 4, MaxShare: 50}},
		{"acme/search", `{"resets": null, "dollars_per_month": 12.5}`, project.Limit{RequestsPerMinute: 7, RequestsPerDay: 70, TokensPerDay: 10, Weight: 4, MaxShare: 50, DollarsPerMonth: 12_500_000_000}},
	} {
		p := as[Project](t, r.want(t, 200, "PATCH", "/v1/projects/"+c.path, c.body))
		switch {
		case strings.Contains(c.body, "zone"):
			c.want.Resets.Zone, c.want.Resets.At = "Europe/Berlin", "06:00"
		case strings.Contains(c.body, `"at": null`):
			c.want.Resets.Zone = "Europe/Berlin"
		}
		testkit.Equal(t, c.body, c.want, p.Limit)
		testkit.Equal(t, "what GET returns", p.Limit, as[Project](t, r.get(t, "/v1/projects/"+c.path)).Limit)
	}
	p := as[Project](t, r.want(t, 200, "PATCH", path, `{"max_wait": "5s", "models": ["gpt-6*"]}`))
	if p.MaxWait != Seconds(5*time.Second) || len(p.Models) != 1 {
		t.Errorf("%+v", p)
	}
	if status := r.call(t, "acme/other", "gpt-4o"); status != http.StatusForbidden {
		t.Errorf("a model that it may not call: %d", status)
	}
	treated := func(p Project) string {
		return fmt.Sprintf("%v %d %s %s", p.Fit, p.FitMin, p.UnknownUsage, p.FailedCalls)
	}
	before := treated(p)
	p = as[Project](t, r.want(t, 200, "PATCH", path, `{"fit": true, "fit_min": 100, "unknown_usage": "seen", "failed_calls": "reserved"}`))
	testkit.Equal(t, "how its calls are treated", "true 100 seen reserved", treated(p))
	testkit.Equal(t, "those of a project below it", "true 100 seen reserved", treated(as[Project](t, r.get(t, "/v1/projects/acme/other/deep"))))
	p = as[Project](t, r.want(t, 200, "PATCH", path, `{"max_wait": null, "models": null, "fit": null, "fit_min": null, "unknown_usage": null, "failed_calls": null}`))
	if p.MaxWait != usualWait || p.Models != nil || treated(p) != before {
		t.Errorf("as the configuration says: %+v", p)
	}
	if status := r.call(t, "acme/other", "gpt-4o"); status != 200 {
		t.Errorf("%d", status)
	}
}

// A PATCH that is not valid changes nothing, costs no more than its length, and says what is allowed.
func TestPatchesThatAreNotValid(t *testing.T) {
	r := newRig(t, usual)
	id := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`)).ID
	quotas, limits, list := r.gateway.Models().Quotas(), r.gateway.Projects().Limits(), r.gateway.Keys().List()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"projects/search", `{"requests_per_minute": 1, "requests_per_minute": 2}`, 400, "duplicate field requests_per_minute"},
		{"projects/search", `{"requests_per_minute": 1, "Requests_per_minute": 2}`, 400, "duplicate field Requests_per_minute"},
		{"projects/search", `{"Requests_per_minute": 2}`, 400, "unknown field"},
		{"projects/search", `{"resets": {"zone": "UTC", "zone": "UTC"}}`, 400, "duplicate field zone"},
		{"projects/search", `{"resets": {"zome": "UTC"}}`, 400, `unknown field \"resets.zome\"`},
		{"projects/search", `{"resets": 5}`, 400, "resets"},
		{"projects/search", `{"requests_per_minute": {"a": 1}}`, 400, "requests_per_minute is a object"},
		{"projects/search", `{"requests_per_minute": NaN}`, 400, "invalid character"},
		{"projects/search", `{"requests_per_minute": 1e400}`, 400, "requests_per_minute"},
		{"projects/search", `{"requests_per_minute": 99999999999999999999}`, 400, "requests_per_minute"},
		{"projects/search", `{"requests_per_minute": -1}`, 400, "requests_per_minute is -1"},
		{"projects/search", `{"requests_per_minute": -0}`, 400, "leave it empty (null) for no limit"},
		{"projects/search", `{"requests_per_minute": "5"}`, 400, "must be a whole number"},
		{"projects/search", `{"paused": "yes"}`, 400, "paused is a string: it must be true or false"},
		{"projects/search", `{"paused": 1}`, 400, "paused is a number"},
		{"projects/search", `{"max_wait": -1}`, 400, "not a duration"},
		{"projects/search", `{"fit_min": 8}`, 400, "fit_min is 8: it must be from 16 to 1048576"},
		{"projects/search", `{"fit": "yes"}`, 400, "fit"},
		{"projects/search", `{"unknown_usage": "none"}`, 400, `unknown_usage is \"none\": it must be reserved or seen`},
		{"projects/search", `{"failed_calls": "half"}`, 400, `failed_calls is \"half\": it must be free or reserved`},
		{"projects/search", `{"max_wait": "25h"}`, 400, "max_wait is 25h0m0s: it must be from 0 to 24h0m0s"},
		{"projects/search", `{"models": []}`, 400, "models is empty"},
		{"projects/search", `{"models": [null]}`, 400, "a name or a pattern"},
		{"projects/search", `{"models": [7]}`, 400, "models"},
		{"projects/search", `{"models": {"0": "a"}}`, 400, "models"},
		{"projects/search", `{"windows": []}`, 400, "unknown field"},
		{"projects/search", `{"min_share": "101%"}`, 400, "it must be from 0% to 100%"},
		{"projects/search", `{"dedicated": true}`, 400, "it needs a min_share"},
		{"projects/search", `[]`, 400, "must be a JSON object"},
		{"projects/search", `null`, 400, "must be a JSON object"},
		{"projects/search", `{} {}`, 400, "nothing after it"},
		{"projects/search", `{"resets": ` + deep(10_000) + `}`, 400, ""},
		{"projects/search", `{"x": ` + strings.Repeat("[", 60_000), 400, ""},
		{"projects/search", `{"weight": ` + deep(9_000) + `}`, 400, "weight"},
		{"projects/search", `{"a": "` + strings.Repeat("x", maxBody) + `"}`, 413, "too long"},
		{"projects/a%20b", `{}`, 400, "visible ASCII"},
		{"projects/", `{}`, 400, ""},
		{"projects/search?dry_run=perhaps", `{}`, 400, "dry_run"},
		{"projects/search?replace=true", `{}`, 400, "unknown parameter"},
		{"quotas/gpt-4o", `{"max_rpm": 0}`, 400, "max_rpm: 0 is not allowed: leave it empty (null) for no limit, or pause the model"},
		{"quotas/gpt-4o", `{"max_rpm": -5}`, 400, "max_rpm of -5"},
		{"quotas/gpt-4o", `{"count": {"outputs": 5}}`, 400, "count.outputs"},
		{"quotas/gpt-4o", `{"reserve": "100%"}`, 400, "reserve"},
		{"quotas/gpt-4o", `{"reserve_tokens": "all"}`, 400, `reserve_tokens: \"all\": it must be most or expected`},
		{"quotas/gpt-4o", `{"on_overrun": "end"}`, 400, `on_overrun: \"end\": it must be debt or cut`},
		{"projects/search", `{"on_overrun": "end"}`, 400, `on_overrun: \"end\": it must be debt or cut`},
		{"projects/search", `{"reserve": "10%"}`, 400, `reserve: \"10%\": it must be most or expected`},
		{"quotas/gpt-4oo", `{"paused": true}`, 404, "no call is charged"},
		{"quotas/gpt-4oo", `{}`, 404, ""},
		{"keys/" + id, `{"limit": {"requests_per_minute": 0}}`, 400, "limit.requests_per_minute: 0 is not allowed: leave it empty (null) for no limit, or pause the key"},
		{"keys/" + id, `{"limit": {"requests_per_minute": 1, "requests_per_minute": 1}}`, 400, "duplicate field requests_per_minute"},
		{"keys/" + id, `{"secret": "x"}`, 400, "unknown field"},
		{"keys/aaaaaaaaaa", `{"paused": true}`, 404, "no such key"},
	} {
		if a := r.want(t, c.status, "PATCH", "/v1/"+c.path, c.body); !strings.Contains(a.text, c.want) || len(a.text) > 2000 {
			t.Errorf("PATCH %s %.80s: %.500s", c.path, c.body, a.text)
		}
	}
	for _, kind := range []string{"text/plain", "", "application/x-www-form-urlencoded"} {
		if a := r.send(t, "PATCH", "/v1/projects/search", `{"paused": true}`, "Content-Type", kind); a.status != http.StatusUnsupportedMediaType {
			t.Errorf("Content-Type %q: %d", kind, a.status)
		}
	}
	if a := r.send(t, "PATCH", "/v1/projects/search", `{"paused": true}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"); a.status != http.StatusForbidden {
		t.Errorf("from another site: %d", a.status)
	}
	testkit.Equal(t, "quotas", quotas, r.gateway.Models().Quotas())
	testkit.Equal(t, "limits", limits, r.gateway.Projects().Limits())
	testkit.Equal(t, "keys", list, r.gateway.Keys().List())
	if by := r.gateway.Controls().State().PausedAt("search"); by != "" {
		t.Errorf("%q is paused", by)
	}
	if a := r.send(t, "PATCH", "/v1/projects/search", `{"weight": 2}`, "Content-Type", "application/merge-patch+json"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.text)
	}
}

func TestPatchOfAQuota(t *testing.T) {
	r := newRig(t, usual)
	before, _ := r.gateway.Models().Quota("gpt-4o")
	m := as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"max_rpm": 50, "reserve": "10%", "pace": "even", "burst": "20%", "count": {"output": 5}}`))
	want := before
	want.MaxRPM, want.Reserve, want.Pace, want.PaceBurst = 50, 10, "even", 20
	want.Count = m.Quota.Count
	testkit.Equal(t, "the quota", want, plainQuota(m))
	m = as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"max_tpm": null, "count": {"output": null}, "pace": null, "burst": null, "reserve": null, "margin": 0}`))
	testkit.Equal(t, "lifted", []string{"max_tpm"}, m.Lifted)
	want = before
	want.MaxRPM, want.MaxTPM, want.Margin = 50, 0, 0
	testkit.Equal(t, "the quota without them", want, plainQuota(m))
	m = as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"margin": null}`))
	testkit.Equal(t, "the provider's margin", before.Margin, plainQuota(m).Margin)
	m = as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/openai/new", `{"max_rpm": 3}`)) // a model that had none
	testkit.Equal(t, "a new quota", 3, m.Quota.MaxRPM)
}

// A dry run says what would change, and changes nothing.
func TestDryRun(t *testing.T) {
	r := newRig(t, usual)
	want := Preview{
		Changed: []FieldChange{
			{"paused", nil, true}, {"requests_per_minute", 60.0, 10.0}, {"tokens_per_month", 1e6, nil},
		},
		Lifted: []string{"tokens_per_month"},
	}
	p := as[Preview](t, r.want(t, 200, "PATCH", "/v1/projects/search?dry_run=true", `{"requests_per_minute": 10, "tokens_per_month": null, "paused": true}`))
	if before := p.Before.(object); before["requests_per_minute"] != 60.0 || p.After.(object)["paused"] != true {
		t.Errorf("%+v", p)
	}
	p.Before, p.After = nil, nil
	testkit.Equal(t, "the changes", want, p)
	p = as[Preview](t, r.want(t, 200, "PUT", "/v1/projects/search?dry_run=true", `{"requests_per_minute": 60}`))
	testkit.Equal(t, "what a PUT would lift", []string{"tokens_per_month"}, p.Lifted)
	p = as[Preview](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o?dry_run=true", `{"max_rpm": 5}`))
	testkit.Equal(t, "the changes of a quota", []FieldChange{{"max_rpm", 100.0, 5.0}}, p.Changed)
	id := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`)).ID
	p = as[Preview](t, r.want(t, 200, "PATCH", "/v1/keys/"+id+"?dry_run=true", `{"limit": {"requests_per_day": 5}}`))
	testkit.Equal(t, "the changes of a key", []FieldChange{{"limit.requests_per_day", nil, 5.0}}, p.Changed)
	if list := as[AuditList](t, r.get(t, "/v1/audit")).Entries; len(list) != 2 {
		t.Errorf("the audit log has %d entries: want those of the key alone", len(list))
	}
	if p := as[Project](t, r.get(t, "/v1/projects/search")); p.Paused || p.Limit.RequestsPerMinute != 60 || p.Limit.TokensPerMonth == 0 {
		t.Errorf("%+v", p)
	}
}

// A change is in the audit log with what was before and what is after, and one that changes nothing is not.
func TestPatchesAreInTheAuditLog(t *testing.T) {
	r := newRig(t, usual)
	r.want(t, 200, "PATCH", "/v1/projects/search", `{"requests_per_minute": 10, "paused": true}`)
	r.want(t, 200, "PATCH", "/v1/projects/search", `{"requests_per_minute": 10}`)
	list := as[AuditList](t, r.get(t, "/v1/audit")).Entries
	if len(list) != 2 || list[1].Result != done || list[1].Action != "project.change" || list[1].Subject != "search" {
		t.Fatalf("%+v", list)
	}
	before, _ := json.Marshal(list[1].Before)
	after, _ := json.Marshal(list[1].After)
	testkit.Equal(t, "before", `{"mode":"enforce","requests_per_minute":60,"tokens_per_month":1000000,"weight":3}`, string(before))
	testkit.Equal(t, "after", `{"mode":"enforce","paused":true,"requests_per_minute":10,"tokens_per_month":1000000,"weight":3}`, string(after))
}

func TestPatchOfAKey(t *testing.T) {
	r := newRig(t, usual)
	id := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search", "limit": {"dollars_per_day": 5}}`)).ID
	k := as[keys.Key](t, r.want(t, 200, "PATCH", "/v1/keys/"+id, `{"limit": {"requests_per_day": 9}, "paused": true}`))
	testkit.Equal(t, "the limit", project.Limit{DollarsPerDay: 5_000_000_000, RequestsPerDay: 9}, k.Limit)
	if !k.Paused || !as[KeyList](t, r.get(t, "/v1/keys")).Keys[0].Paused {
		t.Errorf("%+v", k)
	}
	k = as[keys.Key](t, r.want(t, 200, "PATCH", "/v1/keys/"+id, `{"limit": null, "paused": null}`))
	if k.Limit != (project.Limit{}) || k.Paused {
		t.Errorf("%+v", k)
	}
	r.want(t, 200, "PATCH", "/v1/keys/"+id, `{"paused": true}`)
	r.want(t, 204, "DELETE", "/v1/keys/"+id, "")
	if r.gateway.Controls().State().Key(id).Paused {
		t.Error("a revoked key is paused")
	}
}
