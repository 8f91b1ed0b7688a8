package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// paused is a gateway whose file names a project, so that each start and each reload declares its limit.
const paused = `
providers:
  openai: {base_url: MOCK, models: {m: {max_rpm: 100000}}}
projects:
  acme: {requests_per_day: 100000, tokens_per_month: 5000000}
defaults: {max_wait: 0s}
`

// An operator pauses a project at one gateway: no gateway on the state sends a call of it, and a restart
// does not end the pause.
func TestPausesAreSharedAndOutliveARestart(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, paused, p)
		a, b := launch(t, file, state), launch(t, file, state)
		manage := &admin.Client{Base: a.admin, HTTP: client}
		c, other := call{model: "m", project: "acme/search"}, call{model: "m", project: "other"}
		c.must(t, &a.gatewayURLs, 200)
		c.must(t, &b.gatewayURLs, 200)
		if project, err := patched[admin.Project](t, manage, admin.SubjectProject, "acme", admin.Patch{"paused": true}); err != nil || !project.Paused {
			t.Fatalf("%+v, %v", project, err)
		}
		c.must(t, &a.gatewayURLs, 429)
		answers := func(g *gatewayURLs, status int) func() bool {
			return func() bool { said, err := c.to(g); return err == nil && said.status == status }
		}
		testkit.Eventually(t, "the other has heard of it", answers(&b.gatewayURLs, 429))
		sent := len(p.arrivals(""))
		for range 5 {
			c.must(t, &b.gatewayURLs, 429)
		}
		if n := len(p.arrivals("")); n != sent {
			t.Errorf("%d calls of a paused project were sent", n-sent)
		}
		other.must(t, &b.gatewayURLs, 200)
		reloaded, err := client.Post(b.admin+"/v1/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		reloaded.Body.Close()
		c.must(t, &b.gatewayURLs, 429)
		a.stop(t)
		b.stop(t)
		again := launch(t, file, state)
		c.must(t, &again.gatewayURLs, 429)
		manage.Base = again.admin
		if _, err := patched[admin.Project](t, manage, admin.SubjectProject, "acme", admin.Patch{"paused": nil}); err != nil {
			t.Fatal(err)
		}
		c.must(t, &again.gatewayURLs, 200)
	})
}

// A change that one gateway makes begins with what another has set a moment ago.
func TestChangesBeginWithTheStore(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, paused, p)
		a, b := launch(t, file, state), launch(t, file, state)
		one, two := &admin.Client{Base: a.admin, HTTP: client}, &admin.Client{Base: b.admin, HTTP: client}
		key, err := one.CreateKey(t.Context(), admin.NewKey{Project: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 20; i++ { // at once after each other, before any news
			if _, err := patched[admin.Project](t, one, admin.SubjectProject, "acme", admin.Patch{"requests_per_minute": i}); err != nil {
				t.Fatal(err)
			}
			project, err := patched[admin.Project](t, two, admin.SubjectProject, "acme", admin.Patch{"tokens_per_day": 1000 + i})
			if err != nil || project.Limit.RequestsPerMinute != i || project.Limit.TokensPerDay != 1000+i || project.Limit.TokensPerMonth != 5_000_000 {
				t.Fatalf("%d: %+v, %v", i, project.Limit, err)
			}
			if _, err := patched[admin.Model](t, one, admin.SubjectModel, "m", admin.Patch{"max_tpm": 1000 + i}); err != nil {
				t.Fatal(err)
			}
			model, err := patched[admin.Model](t, two, admin.SubjectModel, "m", admin.Patch{"max_rpd": 100 + i})
			if err != nil || model.Quota.MaxTPM != 1000+i || model.Quota.MaxRPM != 100_000 {
				t.Fatalf("%d: %+v, %v", i, model.Quota, err)
			}
			if _, err := patched[keys.Key](t, one, admin.SubjectKey, key.ID, admin.Patch{"limit": admin.Patch{"requests_per_hour": i}}); err != nil {
				t.Fatal(err)
			}
			changed, err := patched[keys.Key](t, two, admin.SubjectKey, key.ID, admin.Patch{"limit": admin.Patch{"requests_per_day": i}, "paused": i%2 == 0})
			if err != nil || changed.Limit.RequestsPerHour != i || changed.Limit.RequestsPerDay != i || changed.Paused != (i%2 == 0) {
				t.Fatalf("%d: %+v, %v", i, changed, err)
			}
		}
	})
}

// Two gateways that change different fields of one project or model in the same instant do not undo each
// other's changes, and a gateway soon has what another has set.
func TestChangesAtOneTimeAreAllMade(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		file := written(t, paused, newProvider(t))
		a, b := launch(t, file, state), launch(t, file, state)
		one, two := &admin.Client{Base: a.admin, HTTP: client}, &admin.Client{Base: b.admin, HTTP: client}
		together := func(changes ...func() error) {
			t.Helper()
			done := make(chan error)
			for _, change := range changes {
				go func() { done <- change() }()
			}
			for range changes {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
		}
		project := func(c *admin.Client, p admin.Patch) func() error {
			return func() error {
				_, err := patched[admin.Project](t, c, admin.SubjectProject, "acme", p)
				return err
			}
		}
		model := func(c *admin.Client, p admin.Patch) func() error {
			return func() error {
				_, err := patched[admin.Model](t, c, admin.SubjectModel, "m", p)
				return err
			}
		}
		for i := 1; i <= 10; i++ {
			together(
				project(one, admin.Patch{"requests_per_minute": i}), project(two, admin.Patch{"tokens_per_day": i}),
				project(one, admin.Patch{"max_wait": i}), project(two, admin.Patch{"models": []string{fmt.Sprint("m", i)}}),
				model(one, admin.Patch{"max_tpm": i}), model(two, admin.Patch{"max_rpd": i}), model(one, admin.Patch{"mode": "shadow"}), model(two, admin.Patch{"paused": i%2 == 1}),
			)
			p, err := patched[admin.Project](t, one, admin.SubjectProject, "acme", admin.Patch{}) // it reads the store
			if err != nil || p.Limit.RequestsPerMinute != i || p.Limit.TokensPerDay != i || p.Limit.TokensPerMonth != 5_000_000 ||
				p.MaxWait != admin.Seconds(time.Duration(i)*time.Second) || !slices.Equal(p.Models, []string{fmt.Sprint("m", i)}) {
				t.Fatalf("%d: %+v, %v", i, p, err)
			}
			m, err := patched[admin.Model](t, two, admin.SubjectModel, "m", admin.Patch{})
			if err != nil || m.Quota.MaxTPM != i || m.Quota.MaxRPD != i || m.Quota.MaxRPM != 100_000 || m.Mode != "shadow" || m.Stopped != (i%2 == 1) {
				t.Fatalf("%d: %+v, %v", i, m, err)
			}
			together(model(one, admin.Patch{"mode": nil}))
		}
		together(model(one, admin.Patch{"max_tpm": 4_711}))
		testkit.Eventually(t, "the other follows a changed quota", func() bool {
			all, err := two.Quotas(t.Context())
			return err == nil && slices.ContainsFunc(all, func(m admin.Model) bool { return m.Name == "m" && m.Quota.MaxTPM == 4_711 })
		})
	})
}

// The mode that is set at one gateway holds for all on the state, and outlives a restart.
func TestTheModeIsSharedAndOutlivesARestart(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, replaced(paused, "acme: {requests_per_day: 100000,", "acme: {requests_per_day: 1,"), p)
		a, b := launch(t, file, state), launch(t, file, state)
		manage := &admin.Client{Base: a.admin, HTTP: client}
		c := call{model: "m", project: "acme/search"}
		c.must(t, &a.gatewayURLs, 200)
		c.must(t, &b.gatewayURLs, 429)
		if g, err := manage.PatchGateway(t.Context(), admin.Patch{"mode": "shadow"}); err != nil || g.Mode != "shadow" {
			t.Fatalf("%+v, %v", g, err)
		}
		c.must(t, &a.gatewayURLs, 200)
		testkit.Eventually(t, "the other has heard of it", func() bool { said, err := c.to(&b.gatewayURLs); return err == nil && said.status == 200 })
		a.stop(t)
		b.stop(t)
		again := launch(t, file, state)
		c.must(t, &again.gatewayURLs, 200)
		manage.Base = again.admin
		if _, err := manage.PatchGateway(t.Context(), admin.Patch{"mode": nil}); err != nil {
			t.Fatal(err)
		}
		c.must(t, &again.gatewayURLs, 429)
	})
}

// patched changes some fields of a project, a model or a key at a gateway, and returns what that is then.
func patched[T any](t *testing.T, c *admin.Client, of admin.Subject, name string, p admin.Patch) (T, error) {
	return admin.Apply[T](t.Context(), c, admin.Edit{Of: of, Name: name, Patch: p})
}
