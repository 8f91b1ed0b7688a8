package admin

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A subtree has the project itself, known or not, and those below it, each with windows of its
// own. Templates are no projects.
func TestSubtree(t *testing.T) {
	r := newRig(t, "projects: {acme: {dollars: 2.5}, acme/a: {requests_per_day: 3}, acme-b: {requests_per_day: 3}, acme/*: {requests_per_day: 4}}\n")
	day := func(n int64) []Window { return []Window{{"requests_per_day", "requests", n, n, 86400, 0, 0}} }
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
	testkit.Equal(t, "an unknown project", []Project{{ID: "acme/x", Limit: project.Limit{RequestsPerDay: 4, Weight: 1}, Windows: day(4), Mode: "enforce", MaxWait: usualWait, FitMin: 256, UnknownUsage: "reserved", FailedCalls: "free"}}, unknown)
	r.want(t, 400, "GET", "/v1/projects?below=a//b", "")
}

// A project shows those below it that share its limits, at all levels, and what each has and has used
// together with those below itself. Projects that have no limit to share do not.
func TestInnerShares(t *testing.T) {
	r := newRig(t, "projects: {acme: {tokens_per_minute: 400_000, tokens_per_month: 900_000}, acme/a: {weight: 3}, acme/a/y: {weight: 2}, acme/a-b: {priority: 2}}\n")
	r.spend(t, "acme/a-b", 1) // from the second project on, each is counted by itself
	r.spend(t, "acme", 1_000)
	r.spend(t, "acme/a", 2_000)
	r.spend(t, "acme/a/x", 2_000)
	r.spend(t, "acme/a/y", 320_000)
	r.spend(t, "acme/a-b", 4_000)
	all := as[ProjectList](t, r.get(t, "/v1/projects?below=acme")).Projects
	var got []string
	for _, s := range all[0].Shares {
		if len(s.Limits) != 1 || s.Limits[0].Name != "tokens_per_minute" {
			t.Fatalf("%+v: the month is not divided", s.Limits)
		}
		l := s.Limits[0]
		if s.Own {
			s.Project += " itself"
		}
		got = append(got, fmt.Sprintf("%s: weight %d, priority %d, %d of %d", s.Project, s.Weight, s.Priority, l.Used/10*10, l.Part))
		if s.Project == "acme/a" && (l.Borrowed != l.Used-l.Part || l.Lent != 0) {
			t.Errorf("%+v", l)
		}
	}
	testkit.Equal(t, "those below acme", []string{
		"acme itself: weight 1, priority 0, 1000 of 80000",
		"acme/a: weight 3, priority 0, 324000 of 240000",
		"acme/a itself: weight 1, priority 0, 2000 of 60000",
		"acme/a/x: weight 1, priority 0, 2000 of 60000",
		"acme/a/y: weight 2, priority 0, 320000 of 120000",
		"acme/a-b: weight 1, priority 2, 4000 of 80000",
	}, got)
	for _, p := range all[1:] {
		testkit.Equal(t, "the shares of "+p.ID, 0, len(p.Shares))
	}
}

// Of very many below a project, those are shown that are the highest in the tree and the closest to
// their shares.
func TestManyInnerShares(t *testing.T) {
	r := newRig(t, "projects: {acme: {tokens_per_minute: 400_000}}\n")
	for i := range 2 * mostShares {
		r.spend(t, fmt.Sprintf("acme/u%03d", i), 10+i)
	}
	r.spend(t, "acme/u000/deep", 5_000)
	p := as[Project](t, r.get(t, "/v1/projects/acme"))
	if len(p.Shares) != mostShares || !p.More || p.Shares[0].Project != "acme/u000" || p.Shares[1].Project != "acme/u101" {
		t.Errorf("%d, more: %v: %v and %v first", len(p.Shares), p.More, p.Shares[0], p.Shares[1])
	}
}

// spend makes a call of a project that uses tokens.
func (r *rig) spend(t *testing.T, id string, tokens int) {
	t.Helper()
	res, _, err := r.gateway.Projects().Acquire(t.Context(), project.Call{Project: id, Estimated: tokens})
	if err != nil {
		t.Fatal(err)
	}
	res.Commit(tokens, 0)
}

// Calls that wait are counted for their projects, and for those above these.
func TestWaitingCalls(t *testing.T) {
	calls := waitingCalls{map[string]int{}, map[string]int{}}
	calls.add("acme/a/x", 2)
	calls.add("acme/a", 1)
	calls.add("acme/a-b", 4)
	for _, c := range []struct {
		project string
		own     bool
		want    int
	}{{"acme", false, 7}, {"acme", true, 0}, {"acme/a", false, 3}, {"acme/a", true, 1}, {"acme/a/x", false, 2}, {"acme/a-b", false, 4}, {"other", false, 0}} {
		if got := calls.of(&InnerShare{ProjectShare: event.ProjectShare{Project: c.project}, Own: c.own}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
