package admin

import (
	"errors"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
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
