package config_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func Example() {
	_, err := config.Parse("gateway.yaml", []byte(`
listen: 127.0.0.1:9000
providers:
  openai:
    models:
      gpt-6-astra: {max_rmp: 500}
projects:
  search: {weight: 0}
`))
	fmt.Println(err)
	// Output:
	// ratelimit: gateway.yaml:6:21: providers.openai.models.gpt-6-astra: unknown field "max_rmp" (did you mean max_rpm?): it must be one of max_rpm, max_tpm, max_rpd, max_input_tpm, max_output_tpm, max_tpd, max_concurrent, max_tokens_in_flight, max_enqueued_tokens, day_resets_at, auto, margin, reserve, reserve_tokens, on_overrun, pace, burst, count, aliases, mode
	// ratelimit: gateway.yaml:8:20: projects.search.weight: "0": it must be a whole number from 1 to 1048576
}

func ExampleUpstream_Find() {
	cfg, err := config.Parse("gateway.yaml", []byte(`
providers:
  openai:
    models:
      gpt-6-astra: {max_rpm: 500, aliases: [best]}
      "gpt-6*": {max_rpm: 1_000}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"best", "gpt-6-mini", "o9"} {
		model, ok := cfg.Providers["openai"].Find(name)
		fmt.Println(name, model.Name, model.Quota.MaxRPM, ok)
	}
	// Output:
	// best gpt-6-astra 500 true
	// gpt-6-mini gpt-6* 1000 true
	// o9  0 false
}

// Every line of the example that is not commented out is the default.
func TestExampleShowsTheDefaults(t *testing.T) {
	got, err := config.Parse("example.yaml", []byte(config.Example))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutFile(t), got, secrets); diff != "" {
		t.Errorf("-default +example:\n%s", diff)
	}
}

// everything returns the example with all comments made fields, and with secrets that exist.
func everything(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_KEY_A", "RATELIMIT_ADMIN_TOKEN", "OIDC_CLIENT_SECRET", "OTLP_TOKEN"} {
		t.Setenv(name, "the secret of "+name)
	}
	t.Setenv("WEBHOOK_SECRET", "whsec_"+base64.StdEncoding.EncodeToString([]byte("the secret of the webhook")))
	dir := t.TempDir()
	for _, name := range []string{"openai-b", "groq"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the secret of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "projects.yaml"), []byte("projects: {included: {}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^( *)# `).ReplaceAllString(config.Example, "$1")
	return strings.NewReplacer("\nkeys: off", "\nkeys: required", "/run/secrets", dir, "/etc/ratelimit", dir).Replace(text)
}

func TestExampleIsValidWithEverything(t *testing.T) {
	c, err := config.Parse("example.yaml", []byte(everything(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("it warns of %q", c.Warnings)
	}
	if got := c.Providers["openai"].Deployments["team-b"].Key.Reveal(); got != "the secret of openai-b" {
		t.Errorf("the key of a deployment is %q", got)
	}
}

// The fault of an unknown field, in each mapping, lists all names that are known there.
func TestExampleHasEveryField(t *testing.T) {
	text := everything(t)
	marked := regexp.MustCompile(`(?m)^( *)(\S.*:)(?:( *#.*)?\n)(( +)\S)`).ReplaceAllString(text, "$1$2\n${5}unknown: 1\n$4")
	marked = strings.ReplaceAll("unknown: 1\n"+marked, "{", "{unknown: 1, ")
	_, err := config.Parse("example.yaml", []byte(marked))
	if err == nil {
		t.Fatal("unknown fields pass")
	}
	lists := regexp.MustCompile(`"unknown".*: it must be one of (.*)`).FindAllStringSubmatch(err.Error(), -1)
	if len(lists) < 10 {
		t.Fatalf("only %d mappings have answered:\n%v\n%s", len(lists), err, marked)
	}
	known := []string{"env", "file"}
	for _, list := range lists {
		known = append(known, strings.Split(list[1], ", ")...)
	}
	slices.Sort(known)
	for _, name := range slices.Compact(known) {
		if !regexp.MustCompile(`(?m)^ *` + name + `:|\{` + name + `: `).MatchString(text) {
			t.Errorf("%s is not in the example", name)
		}
	}
}
