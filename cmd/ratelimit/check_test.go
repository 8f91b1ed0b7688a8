package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// file writes a file of a test, and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckSaysWhatItMeans(t *testing.T) {
	t.Setenv("TEST_OPENAI_KEY", "sk-very-secret")
	t.Setenv("TEST_TOKEN", "token-very-secret")
	path := file(t, "gateway.yaml", `
listen: 127.0.0.1:9000
admin: {token: {env: TEST_TOKEN}}
state: redis://:very-secret@127.0.0.1:6379/0
providers:
  openai:
    key: {env: TEST_OPENAI_KEY}
    models:
      gpt-x: {max_rpm: 500, max_tpm: 500_000, auto: true, reserve: 10%, aliases: [best]}
projects:
  batch: {max_share: 50%}
  chat: {min_share: 12.5%, max_share: 50%}
  vip: {min_share: 20%, dedicated: true}
  search/news: {}
  search/news/eu: {models: [gpt-x]}
  search: {requests_per_minute: 60, tokens_per_day: 5_000_000, max_concurrent: 20, weight: 3, priority: 1, max_wait: 0s, models: ["gpt-*"]}
`)
	got := run(t, "check", path)
	if got.code != exitFine {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{
		path + " is valid",
		"clients    127.0.0.1:9000",
		"admin API  127.0.0.1:8081, token",
		"gpt-x (also best)",
		"500 requests/min, 500,000 tokens/min, 10% of it in reserve, until the provider reports its own",
		"60 requests/min, 5,000,000 tokens/day (debt), 20 calls at a time       3         1  -                         not at all  gpt-*",
		"at most 50%  ", "12.5% to 50%  ", "at least 20%, dedicated  ",
		"https://api.openai.com",
		"from the configuration",
		"(any other)",
		"gpt-* (as search)\n",
		"not at all  gpt-x\n",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in\n%s", want, got.stdout)
		}
	}
	if strings.Contains(got.stdout+got.stderr, "very-secret") {
		t.Errorf("a secret is shown:\n%s%s", got.stdout, got.stderr)
	}
}

// Whoever checks a file sees who signs in where, what a collector gets, and what becomes of endpoints that the gateway
// does not read; and a model that is probably misspelled. check names the files that a configuration includes.
func TestCheckIncluded(t *testing.T) {
	var names []string
	for i := range 7 {
		names = append(names, file(t, "team.yaml", fmt.Sprintf("projects: {team-%d: {}}", i)))
	}
	got := run(t, "check", file(t, "gateway.yaml", "include: ["+strings.Join(names, ", ")+"]"))
	if got.code != exitFine || !strings.Contains(got.stdout, "team-6") || !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), "included "+strings.Join(names[:5], ", ")+" and 2 more files") {
		t.Errorf("%+v", got)
	}
}

func TestCheckTellsOtherSettings(t *testing.T) {
	t.Setenv("TEST_TOKEN", "token-very-secret")
	got := run(t, "check", file(t, "gateway.yaml", `
keys: required
admin:
  token: {env: TEST_TOKEN}
  oidc: {issuer: "https://login.example.com", client_id: a, url: "https://b.example.com", roles: [{group: sre, role: admin}]}
jwt: {issuer: "https://tokens.example.com", audience: gw}
otlp: {endpoint: "http://127.0.0.1:4318", sample: 5%}
log: {requests: /tmp/requests.jsonl}
providers:
  openai:
    client_login: true
    unknown_endpoints: count
    endpoint_prices: {"POST /v1/whatever": 0.02}
  anthropic: {client_login: true}
projects:
  a: {models: [gpt-4o-minni, "gpt-5*", gpt-4.1, my-own], dollars: 1, fit: true}
  a/b: {}
`))
	for _, want := range []string{
		"127.0.0.1:8081, token, users sign in at https://login.example.com\n",
		"required, or tokens (JWT) of https://tokens.example.com\n",
		"5% of them go to http://127.0.0.1:4318, and metrics every 1m0s\n",
		"logged in /tmp/requests.jsonl\n",
		"the client's login  count, 1 with a price\n",
		"the client's login  -\n",
		"$1.00 in total (hard), max_tokens are lowered to what is left ",
	} {
		if got.code != exitFine || !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in %s%s", want, got.stdout, got.stderr)
		}
	}
	if want := `projects.a.models: no provider names "gpt-4o-minni": did you mean gpt-4o-mini?`; !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "did you mean") != 1 {
		t.Errorf("the warnings: %s", got.stderr)
	}
}

// Whoever checks a file sees which of its limits deny nothing.
func TestCheckTellsShadow(t *testing.T) {
	const of = "providers: {openai: {models: {gpt-x: {max_rpm: 5, mode: shadow}}}}\nprojects: {trial: {requests_per_minute: 7, mode: shadow}}\n"
	for mode, most := range map[string]string{"mode: shadow\n": "mode       shadow: limits count calls, and deny none", "": ""} {
		got := run(t, "check", file(t, "gateway.yaml", mode+of))
		for _, want := range []string{"5 requests/min, in shadow\n", "7 requests/min, in shadow  ", most} {
			if got.code != exitFine || !strings.Contains(got.stdout, want) {
				t.Errorf("there is no %q in %+v", want, got)
			}
		}
		if mode == "" && strings.Contains(got.stdout, "mode  ") {
			t.Errorf("%+v", got)
		}
	}
}

func TestCheckTellsBudgets(t *testing.T) {
	got := run(t, "check", file(t, "gateway.yaml", `
projects:
  acme: {dollars_per_month: 5_000, tokens_per_minute: 2_000_000}
  acme/search: {dollars_per_month: 2_000, dollars_per_day: 150, resets: {zone: Europe/Berlin}}
  acme/search/*: {dollars_per_day: 20, dollars: 99.50}
users: {header: X-User-ID, field: [user, metadata.user_id]}
runs: {dollars: 2, tokens: 1_000_000, calls: 500}
`))
	for _, want := range []string{
		"users      the header X-User-Id, or else the field user, or else the field metadata.user_id\n",
		"runs       500 requests in total, 1,000,000 tokens in total (hard), $2.00 in total (hard) for each, which is forgotten after 24h0m0s\n",
		"acme           2,000,000 tokens/min (debt), $5,000.00/30 days (hard) ",
		"acme/search    $150.00/day (hard), $2,000.00/month (hard) ",
		"acme/search/*  $20.00/day (hard), $99.50 in total (hard) ",
		"(any other)    unlimited ",
		"\nhard  no answer, however long, uses more than there is",
		"\ndebt  a call reserves what is expected of it",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in\n%s", want, got.stdout)
		}
	}
}

func TestCheckTellsAllFaults(t *testing.T) {
	path := file(t, "gateway.yaml", "listen: nowhere\nprojects:\n  a: {wait: 3}\n")
	got := run(t, "check", path)
	if got.code != exitFailed || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{path + ":1:9: ", path + ":3:7: "} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("there is no %q in\n%s", want, got.stderr)
		}
	}
	if strings.Contains(got.stderr, "Usage") {
		t.Errorf("it is no fault of usage:\n%s", got.stderr)
	}
}

// The check marks the kind of a provider as a guess if the file does not name it.
func TestCheckTellsKinds(t *testing.T) {
	got := run(t, "check", file(t, "gateway.yaml", "providers: {router: {base_url: https://openrouter.ai/api}, mine: {kind: compatible, base_url: http://127.0.0.1:1}}"))
	for _, line := range []string{`router +openrouter \(by its address\) +https://openrouter.ai/api `, `mine +compatible +http://127.0.0.1:1 `, `openai +openai +https`} {
		if !regexp.MustCompile(line).MatchString(got.stdout) {
			t.Errorf("there is no %s in\n%s", line, got.stdout)
		}
	}
}

// A server of the operator's own gets no key where clients have keys of the gateway.
func TestCheckTellsWhoseKeys(t *testing.T) {
	t.Setenv("TEST_OPENAI_KEY", "sk-1")
	for keys, want := range map[string]string{"required": "none", "off": "the client's"} {
		got := run(t, "check", file(t, "gateway.yaml", "keys: "+keys+"\nproviders: {openai: {key: {env: TEST_OPENAI_KEY}}, local: {}}"))
		for _, line := range []string{`openai +openai +https://api.openai.com +from the configuration\n`, `local +ollama +http://127.0.0.1:11434 +` + want + `\n`} {
			if !regexp.MustCompile(line).MatchString(got.stdout) {
				t.Errorf("keys %s: there is no %s in\n%s", keys, line, got.stdout)
			}
		}
	}
}

// Where the state is in the environment or in a file, nothing of it is shown.
func TestCheckDoesNotShowTheState(t *testing.T) {
	path := file(t, "gateway.yaml", "state: {env: TEST_STATE}")
	for state, code := range map[string]int{
		"redis://me:very-secret@127.0.0.1:6379/0":            exitFine,
		"redis://127.0.0.1:6379/0?sentinel_pass=very-secret": exitFine,
		"me:very-secret@127.0.0.1:6379":                      exitFailed,
		"redis":                                              exitFailed,
		"redis//me:very-secret@127.0.0.1:6379":               exitFailed,
		"http://me:very-secret@127.0.0.1:6379":               exitFailed,
		"redis://me:very-secret@127.0.0.1:6379/x":            exitFailed,
	} {
		t.Setenv("TEST_STATE", state)
		got := run(t, "check", path)
		if got.code != code || strings.Contains(got.stdout+got.stderr, "very-secret") {
			t.Errorf("%s: %+v", state, got)
		}
		if code == exitFine && !strings.Contains(got.stdout, "state      redis://127.0.0.1:6379/0\n") {
			t.Errorf("%s: %s", state, got.stdout)
		}
	}
}

func TestCheckOfNoFile(t *testing.T) {
	got := run(t, "check", filepath.Join(t.TempDir(), "none.yaml"))
	if got.code != exitFailed || !strings.Contains(got.stderr, "none.yaml") {
		t.Errorf("%+v", got)
	}
}

// The example is a configuration.
func TestCheckExample(t *testing.T) {
	example := run(t, "check", "--example")
	if example.code != exitFine || example.stderr != "" {
		t.Fatalf("%+v", example)
	}
	if got := run(t, "check", file(t, "example.yaml", example.stdout)); got.code != exitFine {
		t.Errorf("%+v", got)
	}
}
