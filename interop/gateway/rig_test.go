package gateway_test

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// project is the one that clients belong to.
const project = "acme"

// providers are those of the tests: MOCK is where they are, SECRETS where their keys are,
// and LIMITS are those of their models.
const providers = `
keys: required
state: memory
providers:
  openai: {base_url: MOCK, key: {file: SECRETS/openai}, models: {gpt-test: {LIMITS, aliases: [best]}}}
  anthropic: {base_url: MOCK, key: {file: SECRETS/anthropic}, models: {claude-test: {LIMITS, aliases: [best]}}}
  gemini: {base_url: MOCK, key: {file: SECRETS/gemini}, models: {gemini-test: {LIMITS, aliases: [best]}}}
  vertex: {kind: vertex, base_url: MOCK, key: {file: SECRETS/vertex}, models: {vertex-test: {LIMITS}}}
  local: {base_url: MOCK, models: {llama-test: {LIMITS, aliases: [best]}}}
  groq: {kind: groq, base_url: MOCK/openai, key: {file: SECRETS/groq}, models: {groq-test: {LIMITS}}}
  openrouter: {kind: openrouter, base_url: MOCK/api, key: {file: SECRETS/openrouter}, models: {maker/router-test: {LIMITS}}}
  azure: {kind: azure, base_url: MOCK, key: {file: SECRETS/azure}, models: {azure-test: {LIMITS}}}
  cohere: {kind: cohere, base_url: MOCK, key: {file: SECRETS/cohere}, models: {command-test: {LIMITS}, embed-test: {LIMITS}, rerank-test: {LIMITS}}}
  mistral: {kind: mistral, base_url: MOCK, key: {file: SECRETS/mistral}, models: {mistral-test: {LIMITS}}}
  bedrock: {kind: bedrock, base_url: MOCK, key: {file: SECRETS/bedrock}, models: {"anthropic.test-v1:0": {LIMITS, aliases: [best]}}}
  voyageai: {kind: voyageai, key: {file: SECRETS/voyageai}, base_url: MOCK}
  jina: {kind: compatible, key: {file: SECRETS/jina}, base_url: MOCK}
  together: {kind: compatible, key: {file: SECRETS/together}, base_url: MOCK}
  fireworks: {kind: compatible, key: {file: SECRETS/fireworks}, base_url: MOCK/inference}
  vllm: {kind: compatible, key: {file: SECRETS/vllm}, base_url: MOCK}
  down: {base_url: "http://127.0.0.1:1", key: {file: SECRETS/openai}}
`

// ample is limits that nothing here exceeds.
const ample = "max_rpm: 100_000, max_tpm: 100_000_000, max_concurrent: 100"

// keyed are the providers that have a key, and the header in which they want it.
var keyed = map[string]struct{ field, prefix string }{
	"openai":     {"Authorization", "Bearer "},
	"anthropic":  {"X-Api-Key", ""},
	"gemini":     {"X-Goog-Api-Key", ""},
	"vertex":     {"Authorization", "Bearer "},
	"groq":       {"Authorization", "Bearer "},
	"openrouter": {"Authorization", "Bearer "},
	"azure":      {"Api-Key", ""},
	"cohere":     {"Authorization", "Bearer "},
	"mistral":    {"Authorization", "Bearer "},
	"bedrock":    {"Authorization", "Bearer "},
	"voyageai":   {"Authorization", "Bearer "},
	"jina":       {"Authorization", "Bearer "},
	"together":   {"Authorization", "Bearer "},
	"fireworks":  {"Authorization", "Bearer "},
	"vllm":       {"Authorization", "Bearer "},
}

// secretOf returns the key that a provider knows.
func secretOf(provider string) string { return "the-key-at-" + provider }

// with returns the configuration in which models have some limits, and what else it is to
// say.
func with(limits string, more ...string) string {
	return strings.ReplaceAll(providers, "LIMITS", limits) + strings.Join(more, "\n")
}

// placed returns a configuration for where the provider is.
func placed(t *testing.T, yaml, mock string) string {
	t.Helper()
	secrets := t.TempDir()
	for name := range keyed {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secretOf(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return strings.NewReplacer("MOCK", mock, "SECRETS", secrets).Replace(yaml)
}

// rig is a gateway in front of a provider, and another provider that is called without.
type rig struct {
	*gateway.Gateway
	url      string
	key      string // a virtual one
	provider *provider
	without  *provider
	log      *testkit.Log
}

// newRig starts all of them.
func newRig(t *testing.T, yaml string) *rig {
	t.Helper()
	now := time.Now()
	r := &rig{provider: newProvider(t, now), without: newProvider(t, now), log: new(testkit.Log)}
	var err error
	cfg := gatewaytest.Config(t, placed(t, yaml, r.provider.url), r.provider.url)
	if r.Gateway, err = gateway.New(cfg, gateway.Options{Log: slog.New(slog.NewJSONHandler(r.log, nil))}); err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(r)
	r.url = listening.URL
	if r.key, _, err = r.Keys().Create(t.Context(), project, "test", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.provider.listening.CloseClientConnections() // if anything still waits for it
		listening.Close()
		r.secretive(t)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// through returns what to ask of an SDK so that its call goes through the gateway.
func (r *rig) through(s *sdk, call string) ask {
	return ask{Call: call, Base: r.url + "/" + s.provider + s.root, Key: r.key, Model: s.model, Pieces: s.pieces}
}

// past returns what to ask of an SDK so that its call goes to a provider itself.
func (r *rig) past(s *sdk, call string) ask {
	return ask{Call: call, Base: r.without.url + s.root, Key: secretOf(s.provider), Model: s.model, Pieces: s.pieces}
}

// idle waits until no request is being served, which is a moment after clients have got
// their answers.
func (r *rig) idle(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "all requests have ended", func() bool { return r.Active() == 0 && r.provider.Active() == 0 })
}

// used returns how many tokens were settled of each model.
func (r *rig) used() map[string]mockprovider.Totals {
	all := map[string]mockprovider.Totals{}
	for _, rec := range r.Recent("", 0, 2000) {
		if rec.Outcome == gateway.Passed {
			model := strings.TrimPrefix(rec.Quota, rec.Provider+"/")
			t := all[model]
			t.Input += rec.Input
			t.Output += rec.Output
			all[model] = t
		}
	}
	return all
}

// settled expects that as many tokens are settled as the provider has sent.
func (r *rig) settled(t *testing.T) {
	t.Helper()
	r.idle(t)
	used := r.used()
	for model, sent := range r.provider.Totals() {
		if u := used[model]; u.Input != sent.Input || u.Output != sent.Output {
			t.Errorf("%s: %d and %d tokens are settled; the provider has sent %+v", model, u.Input, u.Output, sent)
		}
	}
}

// charged expects that a model's quota is charged with what the provider has sent.
func (r *rig) charged(t *testing.T, quota, model string) {
	t.Helper()
	r.idle(t)
	s, sent := r.Models().Stats(quota), r.provider.Totals()[model]
	if s.RPM != sent.Requests+sent.Refused || s.TPM != counted(model, sent) || s.Concurrent != 0 {
		t.Errorf("%s is charged %+v; the provider has sent %+v", quota, s, sent)
	}
}

// counted returns how many tokens count towards a model's quota: Gemini limits those that
// are sent to it.
func counted(model string, t mockprovider.Totals) int {
	if model == "gemini-test" {
		return t.Input
	}
	return t.Input + t.Output
}

// secretive expects that providers have seen their own keys alone, and nobody else any.
func (r *rig) secretive(t *testing.T) {
	t.Helper()
	parts := strings.Split(r.key, "-")
	virtual := parts[len(parts)-1]
	for _, got := range r.provider.received() {
		if got.contains(virtual) {
			t.Errorf("the provider has seen the virtual key: %s %s %v", got.Method, got.URL, got.Header)
		}
	}
	recent, err := json.Marshal(r.Recent("", 0, 2000))
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := r.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := r.log.String() + string(recent)
	for _, family := range metrics {
		told += family.String()
	}
	if strings.Contains(told, virtual) || strings.Contains(told, secretOf("")) {
		t.Error("a key is in the log, the metrics or the recent requests")
	}
}
