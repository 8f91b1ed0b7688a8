package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// sharing runs a test of projects that share the model "m".
func sharing(t *testing.T, q ratelimit.ModelQuota, limits map[string]project.Limit, test func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rl := inMemory(t, quotas{"m": q})
		test(t, rl, withProjects(t, rl, project.Config{Default: &project.Limit{}, Limits: limits}))
	})
}

// makes lets a project call a model until a call is denied. It returns how many have passed, and the
// denial.
func makes(t *testing.T, rl *ratelimit.RateLimiter, model, id string, tokens int) (n int, d ratelimit.Decision) {
	t.Helper()
	for range 1000 {
		var err error
		if _, d, err = rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: model, Project: id, Estimated: tokens}); err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			return n, d
		}
		n++
	}
	t.Fatal("nothing denies")
	return n, d
}

func wantMakes(t *testing.T, rl *ratelimit.RateLimiter, model, id string, want int) {
	t.Helper()
	if n, d := makes(t, rl, model, id, 0); n != want {
		t.Errorf("%s may make %d calls of %s, want %d: %s", id, n, model, want, d.Reason())
	}
}

// nextMinute begins a minute in which nothing is used.
func nextMinute() { time.Sleep(2*time.Minute - time.Duration(time.Now().UnixNano())%time.Minute) }

// What is dedicated to a project is kept free at every model, before the project has called it: since
// when the limit is set, and until it is taken back.
func TestDedicated(t *testing.T) {
	sharing(t, ratelimit.ModelQuota{MaxRPM: 100}, nil, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		set := func(id string, l project.Limit) {
			t.Helper()
			if err := projects.SetLimit(id, l); err != nil {
				t.Fatal(err)
			}
		}
		wantMakes(t, rl, "m", "hog", 100)
		nextMinute()
		set("vip", project.Limit{MinShare: 25})
		wantMakes(t, rl, "m", "hog", 100) // the share is kept only while the project calls
		nextMinute()
		set("vip", project.Limit{MinShare: 25, Dedicated: true})
		wantMakes(t, rl, "m", "hog", 75)
		wantMakes(t, rl, "m", "vip", 25)
		nextMinute()

		set("vip", project.Limit{MinShare: 40, Dedicated: true})
		wantMakes(t, rl, "m", "hog", 60)
		mustSetQuota(t, rl, "later", ratelimit.ModelQuota{MaxRPM: 50})
		wantMakes(t, rl, "later", "", 30) // also calls without a project, and a model that came later
		wantMakes(t, rl, "later", "vip", 20)
		nextMinute()

		if err := rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 100, MaxTPM: 1_000_000}); err != nil { // shares begin anew
			t.Fatal(err)
		}
		wantMakes(t, rl, "m", "hog", 60)
		nextMinute()
		nextMinute()

		if err := projects.UnsetLimit("vip"); err != nil {
			t.Fatal(err)
		}
		wantMakes(t, rl, "m", "hog", 100)
	})
}

// A reserve is for those who come anew.
func TestReserve(t *testing.T) {
	sharing(t, ratelimit.ModelQuota{MaxRPM: 100, Reserve: 10}, nil, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		makes(t, rl, "m", "hog", 0)
		time.Sleep(time.Minute)
		wantMakes(t, rl, "m", "hog", 90)
		wantMakes(t, rl, "m", "late", 10)
	})
}

// A denial says that it is the project's share that denies, how much that is, and among how many.
func TestShareDenies(t *testing.T) {
	limits := map[string]project.Limit{"heavy": {Weight: 3}, "capped": {MaxShare: 20}}
	sharing(t, ratelimit.ModelQuota{MaxRPM: 100, MaxTPM: 1000}, limits, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		n, d := makes(t, rl, "m", "capped", 10)
		if n != 20 || d.Code != ratelimit.DecisionShareLimit || string(d.Code) != "share_exceeded" || d.Limit != "max_rpm_share" {
			t.Errorf("%d pass, and then %+v", n, d)
		}
		testkit.Equal(t, "the share", project.DeniedShare{Project: "capped", Max: 20, Used: 20, Projects: 1}, d.Share)
		testkit.Equal(t, "the reason", fmt.Sprintf("the project has a share of 20 requests a minute of m, and has used 20: try again in %v", d.RetryAfter), d.Reason())
		if d.RetryAfter <= 0 || d.RetryAfter > time.Minute || d.Elsewhere != 0 || d.Owner != "" {
			t.Errorf("%+v", d)
		}

		nextMinute()
		if _, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "heavy", Estimated: 100}); !d.Allowed || err != nil {
			t.Fatal(d, err)
		}
		n, d = makes(t, rl, "m", "light", 100)
		if n != 3 || d.Code != ratelimit.DecisionShareLimit || d.Limit != "max_tpm_share" || d.Share.Projects != 2 || d.Share.Max != 250 {
			t.Errorf("%d pass, and then %+v", n, d)
		}
		if want := "the project has a share of 250 tokens a minute of m while 2 projects use it, and has used 300: try again in "; !strings.HasPrefix(d.Reason(), want) {
			t.Errorf("%q; want %q", d.Reason(), want)
		}
		if n, d = makes(t, rl, "m", "heavy", 100); n != 6 || d.Code != ratelimit.DecisionTPMLimit || d.Limit != "max_tpm" || d.Share != (project.DeniedShare{}) {
			t.Errorf("the quota denies: %d pass, and then %+v", n, d)
		}
	})
}

// To reset a model forgets what projects have used of their shares, too.
func TestResetOfShares(t *testing.T) {
	sharing(t, ratelimit.ModelQuota{MaxRPM: 100}, map[string]project.Limit{"p": {MaxShare: 20}}, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		for range 2 {
			wantMakes(t, rl, "m", "p", 20)
			rl.Reset("m")
		}
	})
}

// While calls of a project wait for its share, denials of its other calls say so.
func TestBehindThoseWhoWaitForAShare(t *testing.T) {
	sharing(t, ratelimit.ModelQuota{MaxRPM: 10}, map[string]project.Limit{"p": {MaxShare: 20}}, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		makes(t, rl, "m", "p", 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, _, err := rl.AcquireCall(ctx, ratelimit.Call{Model: "m", Project: "p"})
			ended <- err
		}()
		synctest.Wait()
		if _, d, _ := rl.AcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "p", MaxWait: time.Second}); d.Code != ratelimit.DecisionShareLimit || d.Limit != "max_rpm_share" || !strings.Contains(d.Reason(), "share of") {
			t.Errorf("%+v", d)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Shares says what each project may use of a model, has used, has lent and has borrowed.
func TestShares(t *testing.T) {
	limits := map[string]project.Limit{"vip": {MinShare: 20, Dedicated: true}, "heavy": {Weight: 3}}
	sharing(t, ratelimit.ModelQuota{MaxRPM: 100, MaxTPD: 1000, MaxConcurrent: 500}, limits, func(t *testing.T, rl *ratelimit.RateLimiter, projects *project.Limiter) {
		want := func(when string, want ...event.ProjectShare) {
			t.Helper()
			testkit.Equal(t, when, want, rl.Shares("m"))
		}
		share := func(id string, waiting int, limits ...event.LimitShare) event.ProjectShare {
			return event.ProjectShare{Project: id, Waiting: waiting, Limits: limits}
		}
		want("before any call", share("vip", 0, event.LimitShare{Name: "max_rpm", Share: 20, Part: 20}, event.LimitShare{Name: "max_tpd", Share: 200, Part: 200}, event.LimitShare{Name: "max_concurrent", Share: 100, Part: 100}))
		for range 30 {
			if _, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "light", Estimated: 10}); !d.Allowed || err != nil {
				t.Fatal(d, err)
			}
		}
		want("a project that is alone",
			share("light", 0, event.LimitShare{Name: "max_rpm", Share: 80, Used: 30, Part: 80}, event.LimitShare{Name: "max_tpd", Share: 800, Used: 300, Part: 800}, event.LimitShare{Name: "max_concurrent", Share: 400, Used: 30, Part: 400}),
			share("vip", 0, event.LimitShare{Name: "max_rpm", Share: 20, Part: 20}, event.LimitShare{Name: "max_tpd", Share: 200, Part: 200}, event.LimitShare{Name: "max_concurrent", Share: 100, Part: 100}))
		for range 2 {
			if _, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "heavy"}); !d.Allowed || err != nil {
				t.Fatal(d, err)
			}
		}
		all := rl.Shares("m")
		rpm := map[string]event.LimitShare{}
		sum := 0
		for _, s := range all {
			rpm[s.Project] = s.Limits[0]
			sum += s.Limits[0].Share
		}
		if l := rpm["light"]; l.Used != 30 || l.Borrowed != 10 || l.Lent != 0 {
			t.Errorf("a part of 20, of which 30 are used: %+v", l)
		}
		if l := rpm["heavy"]; l.Used != 2 || l.Borrowed != 0 || l.Lent != 60-l.Share {
			t.Errorf("a part of 60, of which it can have what is left: %+v", l)
		}
		if sum < 98 || sum > 100 {
			t.Errorf("they share %d of 100", sum)
		}
		n := 0
		for model, all := range rl.AllShares() {
			if model != "m" || len(all) != 3 {
				t.Errorf("%s: %v", model, all)
			}
			n++
		}
		if n != 1 || rl.Shares("unknown") != nil {
			t.Error(n, rl.Shares("unknown"))
		}
	})
}
