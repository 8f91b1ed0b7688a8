package gateway

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// again returns the configuration of a rig with a text replaced.
func (r *rig) again(t testing.TB, yaml string) *config.Config {
	t.Helper()
	base := r.Config().Providers["openai"].Deployments[""].BaseURL
	return gatewaytest.Config(t, yaml, base)
}

const limited = `
state: memory
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 10}}}
defaults: {max_wait: 0s, requests_per_minute: 20}
projects:
  search: {requests_per_minute: 5}
`

// A reload keeps every counter, and applies the changes of the configuration.
func TestReload(t *testing.T) {
	r := newRig(t, limited, mockprovider.Config{})
	for range 3 {
		r.post(t, chat, hello, "X-Project-ID", "search")
	}
	r.settled(t)
	if err := r.Reload(r.again(t, strings.NewReplacer("max_rpm: 10", "max_rpm: 4", "requests_per_minute: 5", "requests_per_minute: 50").Replace(limited))); err != nil {
		t.Fatal(err)
	}
	if s := r.Models().Stats("gpt-4o"); s.RPM != 3 || s.MaxRPM != 4 {
		t.Errorf("%+v", s)
	}
	if a := r.post(t, chat, hello, "X-Project-ID", "search"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.post(t, chat, hello, "X-Project-ID", "search"); a.status != 429 || r.last(t).Limit != "max_rpm" {
		t.Errorf("%d %s by %q", a.status, a.body, r.last(t).Limit)
	}
	// A model and a project that the file does not name any more are not limited any more.
	if err := r.Reload(r.again(t, `
state: memory
providers: {openai: {base_url: MOCK, models: {}}}
defaults: {max_wait: 0s, requests_per_minute: 6}
`)); err != nil {
		t.Fatal(err)
	}
	if got := r.Projects().Limit("search"); got.RequestsPerMinute != 6 {
		t.Errorf("search has %+v", got)
	}
	for _, want := range []int{200, 200, 429} { // after 4 calls before
		if a := r.post(t, chat, hello, "X-Project-ID", "search"); a.status != want {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// A change that takes a restart is refused, and the old configuration stays.
func TestReloadRefused(t *testing.T) {
	r := newRig(t, limited, mockprovider.Config{})
	for field, changed := range map[string]string{
		"listen":       strings.Replace(limited, "state:", "listen: 127.0.0.1:9999\nstate:", 1),
		"admin.listen": strings.Replace(limited, "state:", "admin: {listen: 127.0.0.1:9999}\nstate:", 1),
		"state":        strings.Replace(limited, "state: memory", "state: "+filepath.Join(t.TempDir(), "other.db"), 1),
	} {
		before := r.Config()
		err := r.Reload(r.again(t, changed))
		if err == nil || !strings.Contains(err.Error(), field+" has changed") {
			t.Errorf("%s: %v", field, err)
		}
		if r.Config() != before {
			t.Errorf("%s: the configuration has changed", field)
		}
	}
}

// After a restart, the state has the usage, the keys, and all quotas and limits that were set.
func TestRestart(t *testing.T) {
	yaml := strings.Replace(limited, "state: memory", "state: "+filepath.Join(t.TempDir(), "state.db"), 1)
	var secret string
	t.Run("before", func(t *testing.T) {
		r := newRig(t, yaml, mockprovider.Config{})
		for range 3 {
			if a := r.post(t, chat, hello, "X-Project-ID", "search"); a.status != 200 {
				t.Fatal(a)
			}
		}
		r.settled(t)
		var err error
		if secret, _, err = r.Keys().Create(t.Context(), "search", "", 0); err != nil {
			t.Fatal(err)
		}
		if err := r.Projects().SetLimit("by-hand", project.Limit{RequestsPerMinute: 7}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("after", func(t *testing.T) {
		r := newRig(t, strings.Replace(yaml, "search:", "other:", 1), mockprovider.Config{})
		if s := r.Models().Stats("gpt-4o"); s.RPM != 3 {
			t.Errorf("%+v", s)
		}
		if key, ok := r.Keys().Find(secret); !ok || key.Project != "search" {
			t.Errorf("the key is %+v, %v", key, ok)
		}
		for id, want := range map[string]int{"by-hand": 7, "other": 5, "search": 5} {
			if got := r.Projects().Limit(id).RequestsPerMinute; got != want {
				t.Errorf("%s has %d", id, got)
			}
		}
	})
}

// A gateway that drains finishes the requests in progress, and refuses new ones.
func TestDrain(t *testing.T) {
	provider := &stepper{pieces: make(chan string)}
	r := newRigBefore(t, oneOfEach, provider)
	response := open(t, t.Context(), r, chat, streamed)
	if err := r.Ready(); err != nil {
		t.Error(err)
	}
	r.Drain()
	a := r.post(t, chat, hello)
	if a.status != 503 || !strings.Contains(a.body, `"code":"server_is_overloaded"`) || a.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if r.Ready() == nil {
		t.Error("it says that it is ready")
	}
	provider.pieces <- "data: [DONE]\n\n"
	close(provider.pieces)
	text, err := io.ReadAll(response.Body)
	if string(text) != "data: [DONE]\n\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A call that waits when the gateway drains is refused like a new one, and costs nothing.
func TestDrainRefusesWaitingCalls(t *testing.T) {
	provider := &stepper{pieces: make(chan string)}
	r := newRigBefore(t, `
providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_concurrent: 1}}}}
projects: {one: {requests_per_minute: 1, max_wait: 2m}}
`, provider)
	first := open(t, t.Context(), r, chat, streamed, "one")
	answers := make(chan answer)
	go func() { answers <- r.post(t, chat, hello) }()
	go func() { answers <- r.do(t, "GET", "/openai/v1/models", "", "X-Project-ID", "one") }()
	testkit.Eventually(t, "both wait", func() bool { return r.Models().Waiting("gpt-4o") == 1 && r.Active() == 3 })
	r.Drain()
	for range 2 {
		if a := <-answers; a.status != 503 || !strings.Contains(a.body, "about to stop") || a.header.Get("X-Should-Retry") != "true" {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	}
	close(provider.pieces)
	if _, err := io.ReadAll(first.Body); err != nil {
		t.Error(err)
	}
	r.settled(t)
	if s := r.Models().Stats("gpt-4o"); s.RPM != 1 {
		t.Errorf("%+v", s)
	}
}

// A call waits as long as its project allows, and no longer than its client waits.
func TestMaxWait(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1}}}
defaults: {max_wait: 10m}
projects:
  hasty: {max_wait: 0s}
  short: {max_wait: 10s}
`, mockprovider.Config{})
	if a := r.post(t, chat, hello); a.status != 200 {
		t.Fatal(a)
	}
	for _, c := range [][]string{
		{"X-Project-ID", "hasty"},
		{"X-Project-ID", "short"},
		{"X-Stainless-Timeout", "20"},
		{"X-Server-Timeout", "0.5"},
	} {
		began := time.Now()
		a := r.post(t, chat, hello, c...)
		if a.status != 429 || a.header.Get("Retry-After") == "" || time.Since(began) > 9*time.Second {
			t.Errorf("%q: %d %v %s", c, a.status, a.header, a.body)
		}
	}
}

// A gateway with another file on the same state changes only what its own file names.
func TestTwoFilesOneState(t *testing.T) {
	state := "state: " + filepath.Join(t.TempDir(), "state.db")
	a := newRig(t, strings.Replace(limited, "state: memory", state, 1), mockprovider.Config{})
	b := newRig(t, state+`
providers: {openai: {base_url: MOCK, models: {o3-mini: {max_rpm: 3}}}}
`, mockprovider.Config{})
	if err := b.Reload(b.again(t, state+`
providers: {openai: {base_url: MOCK}}
`)); err != nil {
		t.Fatal(err)
	}
	if q, _ := a.Models().Quota("gpt-4o"); q.MaxRPM != 10 || a.Projects().Limit("search").RequestsPerMinute != 5 {
		t.Errorf("%+v, %+v", q, a.Projects().Limit("search"))
	}
}

// A quota that was set at run time stays where the file has only the default, and is replaced
// where the file names the model. A change of the file replaces learned maxima.
func TestQuotasOfTheFile(t *testing.T) {
	r := newRig(t, limited, mockprovider.Config{})
	set := func(model string, q ratelimit.ModelQuota) {
		t.Helper()
		if err := r.Models().SetQuota(model, q); err != nil {
			t.Fatal(err)
		}
	}
	reload := func(models string) {
		t.Helper()
		if err := r.Reload(r.again(t, "state: memory\nproviders: {openai: {base_url: MOCK, models: "+models+"}}")); err != nil {
			t.Fatal(err)
		}
	}
	want := func(model string, q ratelimit.ModelQuota) {
		t.Helper()
		if q != (ratelimit.ModelQuota{}) {
			q.Margin = 2 * time.Second // the default of the configuration
		}
		got, _ := r.Models().Quota(model)
		testkit.Equal(t, "the quota of "+model, q, got)
	}
	usual := ratelimit.DefaultProfiles()[ratelimit.ProviderOpenAI].Models
	set("o3-mini", ratelimit.ModelQuota{MaxRPM: 7})
	set("gpt-4o", ratelimit.ModelQuota{MaxRPM: 7})
	reload("{gpt-4o: {max_rpm: 11}}")
	want("o3-mini", ratelimit.ModelQuota{MaxRPM: 7})
	want("gpt-4o", ratelimit.ModelQuota{MaxRPM: 11})
	reload("{}")
	guess := usual["gpt-4o"]
	guess.Auto = true
	want("gpt-4o", guess)

	reload("{learner: {max_rpm: 5, max_concurrent: 50, auto: true}}")
	set("learner", ratelimit.ModelQuota{MaxRPM: 500, MaxConcurrent: 50, Auto: true}) // as if the quota was learned
	reload("{learner: {max_rpm: 5, max_concurrent: 50, auto: true}}")
	want("learner", ratelimit.ModelQuota{MaxRPM: 500, MaxConcurrent: 50, Auto: true})
	reload("{learner: {max_rpm: 5, max_concurrent: 10, auto: true}}")
	want("learner", ratelimit.ModelQuota{MaxRPM: 5, MaxConcurrent: 10, Auto: true})
	reload("{}")
	want("learner", ratelimit.ModelQuota{})
}
