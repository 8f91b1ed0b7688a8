package admin

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A subtree has the project itself, known or not, and those inside of it, each with windows of its
// own. Templates are no projects.
func TestSubtree(t *testing.T) {
	r := newRig(t, "projects: {acme: {dollars: 2.5}, acme/a: {requests_per_day: 3}, acme-b: {requests_per_day: 3}, acme/*: {requests_per_day: 4}}\n")
	day := func(n int64) []Window { return []Window{{"day", "requests", n, n, 86400, 0}} }
	all := as[ProjectList](t, r.get(t, "/v1/projects?below=acme")).Projects
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	testkit.Equal(t, "the subtree", []string{"acme", "acme/a"}, ids)
	testkit.Equal(t, "its windows", day(3), all[1].Windows)
	w := all[0].Windows
	if len(w) != 1 || w[0].Name != "dollars" || w[0].Unit != "nanodollars" || w[0].Remaining != 2_500_000_000 {
		t.Errorf("%+v", w)
	}
	unknown := as[ProjectList](t, r.get(t, "/v1/projects?below=acme/x")).Projects
	testkit.Equal(t, "an unknown project", []Project{{ID: "acme/x", Limit: project.Limit{RequestsPerDay: 4, Weight: 1}, Windows: day(4), Mode: "enforce", MaxWait: usualWait}}, unknown)
	r.want(t, 400, "GET", "/v1/projects?below=a//b", "")
}

// A project shows those inside of it that share its limits, and what each has used. Projects that have no
// limit to share do not.
func TestInnerShares(t *testing.T) {
	r := newRig(t, "projects: {acme: {tokens_per_minute: 4_000, tokens_per_month: 9_000}, acme/a: {weight: 3}}\n")
	for id, tokens := range map[string]int{"acme/a": 30, "acme/b": 20} {
		for range 2 {
			res, _, err := r.gateway.Projects().Acquire(t.Context(), project.Call{Project: id, Estimated: tokens})
			if err != nil {
				t.Fatal(err)
			}
			res.Commit(tokens, 0)
		}
	}
	all := as[ProjectList](t, r.get(t, "/v1/projects?below=acme")).Projects
	used := map[string]int{}
	for _, inside := range all[0].Shares {
		if len(inside.Limits) != 1 || inside.Limits[0].Name != "tokens-minute" {
			t.Fatalf("%+v: the month is not divided", inside.Limits)
		}
		used[inside.Project] = inside.Limits[0].Used
	}
	testkit.Equal(t, "what those inside of acme have used", map[string]int{"acme/a": 60, "acme/b": 40}, used)
	for _, p := range all[1:] {
		testkit.Equal(t, "the shares of "+p.ID, 0, len(p.Shares))
	}
}
