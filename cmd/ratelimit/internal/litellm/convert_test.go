package litellm_test

import (
	"os"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/litellm"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// convert converts LiteLLM's file, and reads the result as the gateway does.
func convert(t *testing.T, text string) (litellm.Result, *config.Config) {
	t.Helper()
	result, err := litellm.Convert("config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"AZURE_API_KEY_EU", "AZURE_API_KEY_CA", "OPENAI_API_KEY", "OPENAI_B", "ANTHROPIC_API_KEY", "COMPATIBLE_API_KEY", "RATELIMIT_ADMIN_TOKEN",
	} {
		t.Setenv(name, "a-secret-of-some-length")
	}
	c, err := config.Parse("gateway.yaml", []byte(result.YAML))
	if err != nil {
		t.Fatalf("the gateway does not take it: %v\n%s", err, result.YAML)
	}
	return result, c
}

// All that a file has is in the gateway's file, or in a remark.
func TestConvert(t *testing.T) {
	text, err := os.ReadFile("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result, c := convert(t, string(text))
	if c.Keys != config.KeysRequired || c.State != "redis://redis:6379/0" || len(c.Providers) < 6 {
		t.Errorf("keys %s, state %s, %d providers", c.Keys, c.State, len(c.Providers))
	}
	openai := c.Providers["openai"]
	if m := openai.Models[0]; m.Quota.MaxRPM != 500 || m.Quota.MaxTPM != 500_000 || m.Aliases[0] != "best" {
		t.Errorf("gpt-6-astra is %+v", m)
	}
	if got := openai.Models[1].Name; got != "*" {
		t.Errorf("the pattern comes last, and not %s", got)
	}
	if !strings.Contains(result.YAML, "gpt-6-astra: {input: 2.5, output: 10}") {
		t.Errorf("there are no prices for a million tokens:\n%s", result.YAML)
	}
	for _, secret := range []string{"sk-secret", "sk-1234", "postgresql"} {
		if strings.Contains(result.YAML, secret) {
			t.Errorf("the file has %s", secret)
		}
	}
	wantRemarks(t, result, "13:20: model_list[1].litellm_params.api_version: not converted", "model_list[4].litellm_params.temperature",
		"model_list[7]: not converted", "litellm_settings.fallbacks", "success_callback", "routing_strategy", "database_url", "master_key: a secret")
}

// Accounts that have the same models are deployments of one provider.
func TestDeployments(t *testing.T) {
	_, c := convert(t, `
model_list:
  - {model_name: gpt-4o, litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 5}}
  - {model_name: gpt-4o, litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_B, rpm: 5}}
`)
	if p := c.Providers["openai"]; len(p.Deployments) != 2 {
		t.Errorf("there are %d deployments", len(p.Deployments))
	}
}

// A host of Redis that is in an environment variable is a part of a URL that no file can have.
func TestHostOfRedisInTheEnvironment(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://10.0.0.1:6379/0")
	result, c := convert(t, `
model_list:
  - {model_name: gpt-4o, litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY}}
router_settings: {redis_host: os.environ/REDIS_HOST}
`)
	if c.State != "redis://10.0.0.1:6379/0" {
		t.Errorf("the state is %s:\n%s", c.State, result.YAML)
	}
	wantRemarks(t, result, "redis_host: put the whole URL into the environment variable REDIS_URL")
}

// What cannot be read is an error with its line; a file of something else is one, too.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "is it a config.yaml of LiteLLM?",
		"services: {web: {image: nginx}}": "is it a config.yaml of LiteLLM?",
		"model_list: 3":                   "config.yaml:1",
		"a: [":                            "config.yaml:2",
		"model_list:\n  - {model_name: m, litellm_params: {model: gpt-4o, rpm: many}}":                                 "config.yaml:2",
		"model_list:\n  - {model_name: m, litellm_params: {model: gpt-4o}, model_info: {input_cost_per_token: cheap}}": "is no price",
	} {
		if _, err := litellm.Convert("config.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func wantRemarks(t *testing.T, result litellm.Result, wants ...string) {
	t.Helper()
	var all strings.Builder
	for _, remark := range result.Remarks {
		all.WriteString(remark.String() + "\n")
	}
	for _, want := range wants {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no remark says %q:\n%s", want, all.String())
		}
	}
}
