package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

var secrets = cmp.Options{
	cmp.Comparer(func(a, b config.Secret) bool { return a == b }),
	cmp.Comparer(func(a, b *price.Price) bool { return asJSON(a) == asJSON(b) }),
	cmp.Comparer(func(a, b *price.Table) bool {
		return a.About() == b.About() && asJSON(a.Overrides()) == asJSON(b.Overrides())
	}),
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	return fmt.Sprint(string(text), err)
}

// parsed reads a text, which must be valid.
func parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("gateway.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// differ fails the test if a value is not as wanted.
func differ(t testing.TB, what string, want, got any) {
	t.Helper()
	testkit.Equal(t, what, want, got, secrets)
}

// withoutFile returns the configuration of a gateway without a file.
func withoutFile(t testing.TB) *config.Config {
	t.Helper()
	c, err := config.Load("", config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWithoutAFile(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	c := withoutFile(t)
	for what, pair := range map[string][2]any{
		"listen":    {"127.0.0.1:8080", c.Listen},
		"admin":     {config.Admin{Listen: "127.0.0.1:8081"}, c.Admin},
		"state":     {"/home/me/.core/ratelimits.db", c.State},
		"loss":      {"deny", c.OnStoreLoss},
		"keys":      {config.KeysOff, c.Keys},
		"defaults":  {&config.Project{Limit: project.Limit{Weight: 1}, MaxWait: 30 * time.Second, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, FitMin: 256}, c.Defaults},
		"projects":  {0, len(c.Projects)},
		"log":       {config.Log{Level: "info", Sample: 1}, c.Log},
		"providers": {[]string{"anthropic", "gemini", "local", "openai"}, slices.Sorted(maps.Keys(c.Providers))},
		"server": {config.Server{
			MaxBody: 32 << 20, MaxBodies: 1 << 30, MaxHeader: 64 << 10, HeaderTimeout: 10 * time.Second, BodyTimeout: time.Minute,
			WriteTimeout: time.Minute, ReadOn: 5 * time.Second, IdleTimeout: 2 * time.Minute, Drain: 30 * time.Second, WhileWaiting: config.WaitComments, RetryAfterMax: 10 * time.Minute,
		}, c.Server},
	} {
		differ(t, what, pair[0], pair[1])
	}
	for name, want := range map[string]struct {
		kind llm.Provider
		url  string
	}{
		"openai":    {dialect.OpenAI, "https://api.openai.com"},
		"anthropic": {dialect.Anthropic, "https://api.anthropic.com"},
		"gemini":    {dialect.Gemini, "https://generativelanguage.googleapis.com"},
		"local":     {dialect.Ollama, "http://127.0.0.1:11434"},
	} {
		p := c.Providers[name]
		differ(t, name, &config.Upstream{
			Kind: want.kind, Timeout: 10 * time.Minute, MaxPause: 5 * time.Minute, StreamUsage: config.StreamUsageOn, Margin: 2 * time.Second, Models: profile(name),
			Deployments: map[string]*config.Deployment{"": {BaseURL: want.url}},
		}, p)
	}
	for _, text := range []string{"admin:\nproviders:\n", "keys: off\r\nlog:\r\n  level: info\r\n"} {
		differ(t, text, c, parsed(t, text))
	}
	c.Blank, c.Warnings = true, []string{"gateway.yaml:1:1: it is empty: every setting has its default"}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}", "\ufeff# nothing"} {
		differ(t, text, c, parsed(t, text))
	}
}

// profile returns the models of a built-in provider, in their order.
func profile(name string) (models []config.Model) {
	quotas := ratelimit.DefaultProfiles()[ratelimit.Provider(name)].Models
	for _, model := range slices.Sorted(maps.Keys(quotas)) {
		quota := quotas[model]
		if quota != (ratelimit.ModelQuota{}) {
			quota.Margin = 2 * time.Second
		}
		quota.Auto = quota != ratelimit.ModelQuota{Margin: quota.Margin} // such a quota is a guess
		models = append(models, config.Model{Name: model, Quota: quota, IsDefault: true})
	}
	return models
}

func TestWithoutAHome(t *testing.T) {
	t.Setenv("HOME", "")
	if c, err := config.Load("", config.Overrides{}); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: state: there is no home directory") {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := config.Load("", config.Overrides{State: "~/x.db"}); err == nil || !strings.Contains(err.Error(), "--state: there is no home directory") {
		t.Error(err)
	}
	if c, err := config.Load("", config.Overrides{State: config.Memory}); err != nil || c.State != config.Memory {
		t.Errorf("%+v, %v", c, err)
	}
}

// A field that a named project does not have is as in the defaults, wherever these stand in
// the file.
func TestProjectsOverDefaults(t *testing.T) {
	c := parsed(t, `
projects:
  nothing:
  everything:
    requests_per_minute: 0
    requests_per_hour: 2
    requests_per_day: 3
    tokens_per_minute: 4
    tokens_per_hour: 5
    tokens_per_day: 6
    tokens_per_month: 5_000_000
    max_concurrent: 8
    weight: 9
    priority: -1_000
    max_wait: 0
    unknown_usage: reserved
    failed_calls: free
    models: ["*"]
defaults:
  unknown_usage: seen
  failed_calls: reserved
  requests_per_minute: 60
  weight: 2
  max_wait: 1m30s
  models: ["gpt-6*", 4.5]
`)
	differ(t, "nothing", c.Defaults, c.Projects["nothing"])
	differ(t, "defaults", &config.Project{
		Limit:   project.Limit{RequestsPerMinute: 60, Weight: 2},
		MaxWait: 90 * time.Second, Models: []string{"gpt-6*", "4.5"}, UnknownUsage: config.UsageSeen, FailedCalls: config.FailedReserved, FitMin: 256,
	}, c.Defaults)
	differ(t, "everything", &config.Project{
		Limit: project.Limit{
			RequestsPerHour: 2, RequestsPerDay: 3, TokensPerMinute: 4, TokensPerHour: 5, TokensPerDay: 6,
			TokensPerMonth: 5_000_000, MaxConcurrent: 8, Weight: 9, Priority: -1000,
		},
		Models: []string{"*"}, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, FitMin: 256,
	}, c.Projects["everything"])
}

func TestProviders(t *testing.T) {
	t.Setenv("ONE", "key-1")
	t.Setenv("TWO", "key-2")
	c := parsed(t, `
providers:
  openai:
    key: {env: ONE}
    retries: 3
    max_pause: 30s
    http2: true
    stream_usage: off
    timeout: 250ms
    margin: 3s
    models:
      gpt-4o:
        max_rpm: 1
        max_tpm: 2
        max_rpd: 3
        max_input_tpm: 4
        max_output_tpm: 5
        max_tpd: 6
        max_concurrent: 7
        day_resets_at: 00:00 America/Los_Angeles
        auto: true
        margin: 0s
        aliases: [best, o1]
      gpt-4.1: {max_rpm: 5}
      "gpt-4*": {}
  azure:
    kind: azure
    key: {env: ONE}
    deployments:
      eu: {base_url: https://eu.example.com/}
      us: {base_url: "https://us.example.com:8443/base/", key: {env: TWO}}
  vllm: {base_url: "http://[::1]:8000"}
`)
	// Default quotas stay for models that the file does not name.
	models := []config.Model{
		{Name: "gpt-4o", Aliases: []string{"best", "o1"}, Quota: ratelimit.ModelQuota{
			MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7,
			DayResetsAt: "00:00 America/Los_Angeles", Auto: true,
		}},
		{Name: "gpt-4.1", Quota: ratelimit.ModelQuota{MaxRPM: 5, Margin: 3 * time.Second}},
		{Name: "gpt-4*"},
	}
	for _, m := range profile("openai") {
		if !strings.HasPrefix(m.Name, "gpt-4") && m.Name != "o1" {
			m.Quota.Margin = 3 * time.Second
			models = append(models, m)
		}
	}
	one, two := config.NewSecret("key-1"), config.NewSecret("key-2")
	for name, want := range map[string]*config.Upstream{
		"openai": {
			Kind: dialect.OpenAI, Retries: 3, HTTP2: true, Timeout: 250 * time.Millisecond, MaxPause: 30 * time.Second, StreamUsage: config.StreamUsageOff, Margin: 3 * time.Second, Models: models,
			Deployments: map[string]*config.Deployment{"": {BaseURL: "https://api.openai.com", Key: one}},
		},
		"azure": {Kind: dialect.Azure, Timeout: 10 * time.Minute, MaxPause: 5 * time.Minute, StreamUsage: config.StreamUsageOn, Margin: 2 * time.Second, Deployments: map[string]*config.Deployment{
			"eu": {BaseURL: "https://eu.example.com", Key: one},
			"us": {BaseURL: "https://us.example.com:8443/base", Key: two},
		}},
		"vllm": {Kind: dialect.Compatible, KindGuessed: true, Timeout: 10 * time.Minute, MaxPause: 5 * time.Minute, StreamUsage: config.StreamUsageOn, Margin: 2 * time.Second, Deployments: map[string]*config.Deployment{
			"": {BaseURL: "http://[::1]:8000"},
		}},
	} {
		differ(t, name, want, c.Providers[name])
	}
}

// A provider whose kind the file leaves out has that of its host.
func TestKindsAreGuessedFromHosts(t *testing.T) {
	c := parsed(t, `
providers:
  router: {base_url: "https://openrouter.ai/api", models: {a/b: {max_rpm: 1}}}
  named: {kind: compatible, base_url: "https://openrouter.ai/api"}
  clouds: {deployments: {a: {base_url: "https://proxy.example.com"}, b: {base_url: "https://here.openai.azure.com"}}}
  amazon: {base_url: "https://bedrock-runtime.us-east-1.amazonaws.com"}
  unknown: {base_url: "https://llm.example.com"}
  openai: {base_url: "https://openrouter.ai/api"}
  anthropic: {base_url: "http://127.0.0.1:1"}
`)
	type kind struct {
		kind    llm.Provider
		guessed bool
	}
	for name, want := range map[string]kind{
		"router": {dialect.OpenRouter, true}, "named": {dialect.Compatible, false}, "clouds": {dialect.Azure, true}, "amazon": {dialect.Bedrock, true},
		"unknown": {dialect.Compatible, true}, "openai": {dialect.OpenRouter, true}, "anthropic": {dialect.Anthropic, false}, "gemini": {dialect.Gemini, false},
	} {
		if p := c.Providers[name]; (kind{p.Kind, p.KindGuessed}) != want {
			t.Errorf("%s: %s, guessed %v; want %+v", name, p.Kind, p.KindGuessed, want)
		}
	}
	if _, known := c.Providers["router"].Find("a/b:free"); !known {
		t.Error("the names of models are not read as those of the kind")
	}
}

// With keys required, only providers that the file names are served. A server of the
// operator's own needs no key. Once, the built-in provider local was served although nobody
// had asked for it.
func TestKeysRequired(t *testing.T) {
	t.Setenv("ONE", "key-1")
	for providers, want := range map[string][]string{
		`{openai: {key: {env: ONE}}, vllm: {base_url: "http://10.0.0.1:8000"}}`: {"openai", "vllm"},
		`{openai: {key: {env: ONE}}, local: {}}`:                                {"local", "openai"},
		`{local: {models: {m: {max_rpm: 1}}}}`:                                  {"local"},
		`{}`:                                                                    nil,
	} {
		c := parsed(t, "keys: required\nproviders: "+providers)
		differ(t, providers, want, slices.Sorted(maps.Keys(c.Providers)))
		if warned := strings.Contains(fmt.Sprint(c.Warnings), "no provider is served"); warned != (want == nil) {
			t.Errorf("%s: the warnings are %q", providers, c.Warnings)
		}
	}
}

func TestListeners(t *testing.T) {
	t.Setenv("TOKEN", "token-1")
	for address, ok := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true, "off": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1.example.com:1": false,
	} {
		if _, err := config.Load("", config.Overrides{Admin: address, State: config.Memory}); (err == nil) != ok {
			t.Errorf("%s without a token: %v", address, err)
		}
		if _, err := config.Parse("", []byte("admin: {token: {env: TOKEN}, listen: '"+address+"'}")); err != nil {
			t.Errorf("%s with a token: %v", address, err)
		}
	}
	if c := parsed(t, "{listen: '127.0.0.1:0', admin: {listen: '127.0.0.1:0'}}"); c.Admin.Listen != "127.0.0.1:0" {
		t.Errorf("any free port twice is %q", c.Admin.Listen)
	}
	for _, text := range []string{"admin: {listen: off}", "admin: off"} {
		if c := parsed(t, text); c.Admin.Listen != "" {
			t.Errorf("%s is %q", text, c.Admin.Listen)
		}
	}
}

func TestOverrides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "listen: 127.0.0.1:1\nadmin: {listen: '127.0.0.1:2'}\nstate: redis://127.0.0.1\non_store_loss: share\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, config.Overrides{Listen: ":3", Admin: "localhost:4", State: "rediss://r:1/2"})
	if err != nil {
		t.Fatal(err)
	}
	differ(t, "what wins", []string{":3", "localhost:4", "rediss://r:1/2"}, []string{c.Listen, c.Admin.Listen, c.State})
	if c, err := config.Load(path, config.Overrides{}); err != nil || c.Listen != "127.0.0.1:1" {
		t.Errorf("without them: %+v, %v", c, err)
	}
	for want, o := range map[string]config.Overrides{
		`ratelimit: --listen: "here": it must be a host and a port, such as 127.0.0.1:8080, or :8080 for all interfaces`:                               {Listen: "here"},
		`ratelimit: --admin: other machines can reach :80: admin.token must be set, or it must be a loopback address`:                                  {Admin: ":80"},
		`ratelimit: --state: it is another kind of URL: it must be the path of a SQLite file, a URL that begins with redis:// or rediss://, or memory`: {State: "http://x"},
		`ratelimit: ` + path + `:4:16: on_store_loss: share is for a state in Redis: it must be deny, or left out`:                                     {State: "memory"},
	} {
		if _, err := config.Load(path, o); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", o, err, want)
		}
	}
	if err := os.WriteFile(path+".large", []byte("#"+strings.Repeat("x", 4<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path+".large", config.Overrides{}); err == nil || !strings.Contains(err.Error(), "larger than 4194304 bytes") {
		t.Error(err)
	}
	if _, err := config.Load(path+".missing", config.Overrides{}); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: the configuration cannot be read: ") {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	t.Setenv("ONE", "key-1")
	t.Setenv("URL", "redis://:hunter2@localhost")
	for text, want := range map[string][]string{
		"listen: ':80'\nproviders:\n  openai: {key: {env: ONE}}": {
			"gateway.yaml:3:3: providers.openai: anybody who can reach :80 can call it with your key: keys should be required"},
		"listen: ':80'\nproviders:\n  openai: {deployments: {a: {key: {env: ONE}}, b: {}}}": {
			"gateway.yaml:3:26: providers.openai.deployments.a: anybody who can reach :80 can call it with your key: keys should be required"},
		"providers:\n  openai: {key: {env: ONE}}":                                nil,
		"keys: required\nlisten: ':80'\nproviders:\n  openai: {key: {env: ONE}}": nil,
		"state: redis://:hunter2@localhost": {
			"gateway.yaml:1:8: state: the password of Redis can be seen: state should be {env: NAME} or {file: PATH}"},
		"state: {env: URL}": nil,
		"providers:\n  anthropic:\n    models:\n      claude-sonnet-4: {aliases: [sonnet]}": {
			"gateway.yaml:4:7: providers.anthropic.models.claude-sonnet-4: it sets neither requests nor tokens, which lifts the default quota: set them, or max_rpm: 0 if that is meant"},
		"providers:\n  gemini:\n    models:\n      gemini-2.5-pro: {max_concurrent: 3}": {
			`gateway.yaml:4:7: providers.gemini.models["gemini-2.5-pro"]: it sets neither requests nor tokens, which lifts the default quota: set them, or max_rpm: 0 if that is meant`},
		"providers: {anthropic: {models: {claude-sonnet-4: {}}}}":                              nil, // {} lifts the limits on purpose
		"providers: {anthropic: {models: {claude-sonnet-4: {aliases: [sonnet], max_rpm: 0}}}}": nil,
		"providers: {anthropic: {models: {claude-sonnet-4: {aliases: [sonnet], auto: true}}}}": nil,
		"providers: {anthropic: {models: {claude-sonnet-9: {aliases: [sonnet]}}}}":             nil, // the model had no default quota
		"providers: {gemini: {models: {gemini-2.0-flash-lite: {aliases: [lite]}}}}":            nil, // the model had no default quota
		"admin:\n  token: {env: ONE}": {
			"gateway.yaml:2:3: admin.token: it could be guessed: it should have 16 characters or more"},
		"admin: {token: {env: URL}}": nil,
		"keys: required\nadmin: {listen: off}\nproviders: {local: {}}": {
			"gateway.yaml:2:17: admin.listen: keys are made through the admin API: it should be on, here or at another gateway that shares the state"},
		"admin: {listen: off}": nil,
	} {
		differ(t, text, want, parsed(t, text).Warnings)
	}
	if c := parsed(t, "state: {env: URL}"); c.State != "redis://:hunter2@localhost" {
		t.Errorf("the state is %q", c.State)
	}
}

// A name stands for the model that the rules for names give, and an exact name comes first.
func TestFind(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
state: memory
providers:
  anthropic: {models: {claude-haiku-3.5: {}, claude-3-5-haiku-20240101: {}, claude-opus-5-20260101: {}, claude-opus-5-20260202: {}, "claude-opus-6-2026*": {}, claude-opus-6: {}, "*": {}}}
  router: {kind: openrouter, base_url: "http://127.0.0.1", models: {a/b: {aliases: [best]}, "*:free": {}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ provider, name, want string }{
		{"anthropic", "claude-haiku-3.5", "claude-haiku-3.5"},
		{"anthropic", "claude-3-5-haiku", "claude-haiku-3.5"},
		{"anthropic", "claude-3-5-haiku-20241022", "claude-haiku-3.5"},
		{"anthropic", "claude-3-5-haiku-20240101", "claude-3-5-haiku-20240101"},
		{"anthropic", "claude-haiku-3.5-20240101", "claude-3-5-haiku-20240101"}, // the same model by its plain name
		{"anthropic", "claude-opus-5-latest", "claude-opus-5-20260101"},
		{"anthropic", "claude-opus-5-20260202", "claude-opus-5-20260202"},
		{"anthropic", "claude-opus-6-20260101", "claude-opus-6-2026*"}, // a pattern for releases
		{"anthropic", "claude-6-opus-20250101", "claude-opus-6"},
		{"anthropic", "claude-opus-7", "*"},
		{"router", "A/B", "a/b"},
		{"router", "a/b:nitro", "a/b"},
		{"router", "a/b:free", "*:free"},
		{"router", "best", "a/b"},
		{"router", "a/c", ""},
	} {
		if m, ok := cfg.Providers[c.provider].Find(c.name); m.Name != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q is %q; want %q", c.provider, c.name, m.Name, c.want)
		}
	}
}
