package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// asked counts what a store is asked, and records the events that observers get.
type asked struct {
	store.Store
	takes, peeks atomic.Int32
	testkit.Recorder[event.Event]
}

func (a *asked) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	a.takes.Add(1)
	return a.Store.Take(ctx, charges)
}

func (a *asked) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	a.peeks.Add(1)
	return a.Store.Peek(ctx, charges)
}

// newDeployments returns a rig with deployments of one letter each, whose limits are in a store
// that counts what it is asked.
func newDeployments(t *testing.T, names string, maxWait time.Duration, quota ratelimit.ModelQuota, ofProject project.Limit) (*rig, *asked) {
	t.Helper()
	var deployments []string
	quotas := map[string]ratelimit.ModelQuota{}
	for _, name := range names {
		deployments = append(deployments, string(name)+": {base_url: MOCK}")
		quotas["gpt-4o@"+string(name)] = quota
	}
	r := newRig(t, fmt.Sprintf("providers: {openai: {deployments: {%s}}}\ndefaults: {max_wait: %v}\n", strings.Join(deployments, ", "), maxWait), mockprovider.Config{})
	a := &asked{Store: store.NewMemory()}
	models, err := ratelimit.NewWithStore(a, ratelimit.Config{Quotas: quotas, Observer: a})
	if err != nil {
		t.Fatal(err)
	}
	if r.limits.Projects, err = models.NewProjects(project.Config{Default: &ofProject}); err != nil {
		t.Fatal(err)
	}
	r.limits.Models = models
	return r, a
}

// A call takes once where the first deployment admits it, and looks at none. A denial takes
// nothing, so the call goes on to the next deployment. Only if all deny it is one asked again.
// Observers get the event of one decision for each call.
func TestOneTakeChoosesADeployment(t *testing.T) {
	type count struct{ Status, Takes, Peeks, Admitted, Denied int }
	for _, test := range []struct {
		name              string
		deployments, used string // used is those whose quota is used up
		limit             project.Limit
		want              count
	}{
		{"the first admits", "abc", "", project.Limit{}, count{200, 1, 0, 1, 0}},
		{"the second admits", "abc", "a", project.Limit{}, count{200, 2, 0, 1, 0}},
		{"the third admits", "abc", "ab", project.Limit{}, count{200, 3, 0, 1, 0}},
		{"none admits", "abc", "abc", project.Limit{}, count{429, 4, 0, 0, 1}},
		{"the only one denies", "a", "a", project.Limit{}, count{429, 1, 0, 0, 1}},
		{"the project denies", "abc", "", project.Limit{MaxConcurrent: 1}, count{429, 2, 0, 0, 1}},
		{"the project admits", "abc", "a", project.Limit{MaxConcurrent: 2}, count{200, 2, 0, 1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, a := newDeployments(t, test.deployments, 0, ratelimit.ModelQuota{MaxRPM: 1}, test.limit)
			for _, name := range test.used {
				r.Models().RecordUsage("gpt-4o@"+string(name), 1, 0)
			}
			if test.limit.MaxConcurrent > 0 {
				if _, d, err := r.Projects().Take(t.Context(), project.Call{Project: "default"}); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			}
			a.takes.Store(0)
			a.Since()
			answer := r.post(t, chat, hello)
			r.settled(t)
			events := func(kind event.Kind) int {
				return a.Count(func(e event.Event) bool { return e.Kind == kind })
			}
			got := count{answer.status, int(a.takes.Load()), int(a.peeks.Load()), events(event.Admitted), events(event.Denied)}
			testkit.Equal(t, answer.body, test.want, got)
		})
	}
}

// A deployment is chosen for what the call reserves, and not for its prompt alone.
func TestADeploymentWithoutRoomForTheAnswer(t *testing.T) {
	r, _ := newDeployments(t, "abc", 0, ratelimit.ModelQuota{MaxTPM: 1000}, project.Limit{})
	r.Models().RecordUsage("gpt-4o@a", 700, 0)
	body := strings.Replace(hello, `"max_tokens":9,`, `"max_tokens":500,`, 1)
	if a := r.post(t, chat, body); a.status != 200 || r.last(t).Deployment != "b" {
		t.Errorf("%d %s from %q", a.status, a.body, r.last(t).Deployment)
	}
}

// The refusal of a call that all deployments deny says when the first of them admits it.
func TestTheDeploymentThatAdmitsSoonest(t *testing.T) {
	r, _ := newDeployments(t, "abc", 0, ratelimit.ModelQuota{MaxRPD: 1}, project.Limit{})
	if err := r.Models().SetQuota("gpt-4o@b", ratelimit.ModelQuota{MaxRPM: 1}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		r.Models().RecordUsage("gpt-4o@"+name, 1, 0)
	}
	a := r.post(t, chat, hello)
	if last := r.last(t); a.status != 429 || last.Deployment != "b" || last.Quota != "gpt-4o@b" || last.Limit != "max_rpm" {
		t.Errorf("%d %s: %+v", a.status, a.body, last)
	}
	const want = `not sent: model \"gpt-4o\" has 0 of its 1 requests a minute left: try again in `
	if !strings.Contains(a.body, want) {
		t.Errorf("the client is told %s", a.body)
	}
}

// Calls that wait go to the deployment that has room first.
func TestWaitAtADeployment(t *testing.T) {
	r, _ := newDeployments(t, "abc", time.Minute, ratelimit.ModelQuota{MaxConcurrent: 1}, project.Limit{})
	held := map[string]*ratelimit.Reservation{}
	for _, name := range []string{"a", "b", "c"} {
		held[name], _ = r.Models().TryAcquire("gpt-4o@"+name, 1)
	}
	done := make(chan answer)
	go func() { done <- r.post(t, chat, hello) }()
	testkit.Eventually(t, "the call waits", func() bool { return r.Models().Waiting("gpt-4o@a") == 1 })
	held["a"].Cancel()
	if a := <-done; a.status != 200 || r.last(t).Deployment != "a" {
		t.Errorf("%d %s from %q", a.status, a.body, r.last(t).Deployment)
	}
}

func TestQuotaUsage(t *testing.T) {
	stats := func(rpm, tpm, rpd int) ratelimit.ModelStats {
		return ratelimit.ModelStats{RPM: rpm, MaxRPM: 10, TPM: tpm, MaxTPM: 100, RPD: rpd, MaxRPD: 1000}
	}
	start := time.Now()
	for _, test := range []struct {
		name     string
		decision ratelimit.Decision
		after    time.Duration
		want     float64
	}{
		{"the scarcest counts", ratelimit.Decision{Decision: project.Decision{Allowed: true}, Stats: stats(2, 50, 100)}, 0, 0.5},
		{"half of a minute later", ratelimit.Decision{Decision: project.Decision{Allowed: true}, Stats: stats(2, 50, 100)}, 30 * time.Second, 0.25},
		{"a minute later the day counts", ratelimit.Decision{Decision: project.Decision{Allowed: true}, Stats: stats(2, 50, 240)}, time.Hour, 0.23},
		{"a day later nothing counts", ratelimit.Decision{Decision: project.Decision{Allowed: true}, Stats: stats(2, 50, 240)}, 25 * time.Hour, 0},
		{"a denial", ratelimit.Decision{Code: ratelimit.DecisionTPMLimit, Stats: stats(2, 50, 100)}, 15 * time.Second, 0.75},
		{"a denial of the project", ratelimit.Decision{Code: ratelimit.DecisionProjectLimit, Stats: stats(2, 50, 100)}, 0, 0.5},
		{"no limits", ratelimit.Decision{Stats: ratelimit.ModelStats{RPM: 7, TPM: 7}}, 0, 0},
	} {
		var q quotaUsage
		q.record("some", &test.decision, start)
		if got := q.at("some", start.Add(test.after)); fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", test.want) {
			t.Errorf("%s: %v is used, want %v", test.name, got, test.want)
		}
		if got := q.at("other", start); got != 0 {
			t.Errorf("%s: %v of an unknown quota is used", test.name, got)
		}
	}
}
