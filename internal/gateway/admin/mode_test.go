package admin

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A model, a project with all below it, and the gateway as a whole are put in shadow and back, and the
// state and the audit log say so.
func TestModes(t *testing.T) {
	r := newRig(t, usual)
	calls := func(want ...int) {
		t.Helper()
		var got []int
		for range want {
			got = append(got, r.call(t, "small", "gpt-4o"))
		}
		testkit.Equal(t, "the calls", want, got)
	}
	calls(200, 200, 429)
	p := as[Project](t, r.want(t, 200, "PATCH", "/v1/projects/small", `{"mode": "shadow"}`))
	testkit.Equal(t, "its mode, and its limit", [2]any{"shadow", 2}, [2]any{p.Mode, p.Limit.RequestsPerMinute})
	testkit.Equal(t, "the mode below it", "shadow", as[Project](t, r.get(t, "/v1/projects/small/alice")).Mode)
	calls(200, 200)
	m := as[Model](t, r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"mode": "shadow", "max_rpm": 1}`))
	testkit.Equal(t, "the model", [2]any{"shadow", 1}, [2]any{m.Mode, m.Quota.MaxRPM})
	calls(200, 200)
	r.want(t, 200, "PATCH", "/v1/quotas/gpt-4o", `{"mode": null}`)
	calls(429)
	testkit.Equal(t, "the gateway", Gateway{"enforce", "test"}, as[Gateway](t, r.get(t, "/v1/gateway")))
	p2 := as[Preview](t, r.want(t, 200, "PATCH", "/v1/gateway?dry_run=true", `{"mode": "shadow"}`))
	testkit.Equal(t, "what would change", []FieldChange{{"mode", "enforce", "shadow"}}, p2.Changed)
	calls(429)
	testkit.Equal(t, "the gateway in shadow", "shadow", as[Gateway](t, r.want(t, 200, "PATCH", "/v1/gateway", `{"mode": "shadow"}`)).Mode)
	calls(200, 200)
	s := as[State](t, r.get(t, "/v1/state"))
	testkit.Equal(t, "the state", [2]string{"shadow", "shadow"}, [2]string{s.Mode, s.Projects[0].Mode})
	testkit.Equal(t, "the overview", "shadow", as[Overview](t, r.get(t, "/v1/overview")).Mode)
	r.want(t, 200, "PATCH", "/v1/gateway", `{"mode": null}`)
	calls(429)
	list := as[AuditList](t, r.get(t, "/v1/audit")).Entries
	if last := list[len(list)-1]; last.Action != "gateway.change" || last.Before.(object)["mode"] != "shadow" || last.After.(object)["mode"] != "enforce" || last.Result != done {
		t.Errorf("%+v", last)
	}
	for _, c := range [][2]string{
		{"/v1/gateway", `{"mode": "off"}`}, {"/v1/gateway", `{"mode": true}`}, {"/v1/gateway", `{"modes": "shadow"}`},
		{"/v1/projects/small", `{"mode": "Shadow"}`}, {"/v1/quotas/gpt-4o", `{"mode": ""}x`}, {"/v1/quotas/gpt-4o", `{"mode": "none"}`},
	} {
		if a := r.want(t, 400, "PATCH", c[0], c[1]); !strings.Contains(a.text, "it must be") && !strings.Contains(a.text, "the fields are") {
			t.Errorf("%v: %s", c, a.text)
		}
	}
}
