package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const pricesFile = `
providers:
  europe: {kind: azure, base_url: "https://eu.example.com"}
prices:
  gpt-6-astra:
    - {input: 2.50, cached_input: 0.25, output: 10.00, request: 0.001, batch: 50%, above: {tokens: 200_000, input: 5}}
    - {input: 3, output: 12, from: 2030-01-01}
  "europe/my*": {input: 1}
`

// prices runs the command with a configuration.
func prices(t *testing.T, text string, args ...string) outcome {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	path := file(t, "gateway.yaml", text)
	got := run(t, append([]string{"prices", "--config", path}, args...)...)
	got.stdout = strings.ReplaceAll(got.stdout, path, "gateway.yaml")
	got.stderr = strings.ReplaceAll(got.stderr, path, "gateway.yaml")
	return got
}

// A call is shown with each of its parts, and where their prices come from.
func TestPricesOfACall(t *testing.T) {
	for _, c := range []struct{ name, file, args, want string }{
		{"parts", pricesFile, "gpt-6-astra --input 1_000 --cached 400 --output 10 --at 2026-11-16", `
model   gpt-6-astra
prices  gateway.yaml
since   always
until   2030-01-01
tier    usual

part              tokens  a million    costs
input                600      $2.50  $0.0015
cached_input         400      $0.25  $0.0001
output                10     $10.00  $0.0001
request                               $0.001
the call                             $0.0027
reserved at most                     $0.0036
`},
		{"a long prompt in a batch", pricesFile, "gpt-6-astra --input 200_001 --output 0 --tier batch --at 2026-11-16", `
model   gpt-6-astra
prices  gateway.yaml
since   always
until   2030-01-01
tier    batch
prompt  of more than 200,000 tokens, which costs more

part               tokens  a million       costs
input             200,001      $2.50  $0.5000025
request                                  $0.0005
the call                              $0.5005025
reserved at most                      $0.5005025
`},
		{"from a date on", pricesFile, "gpt-6-astra --tier flex --at 2030-01-01", `
model   gpt-6-astra
prices  gateway.yaml
since   2030-01-01
tier    flex, which has no prices of its own

part              tokens  a million   costs
input              1,000      $3.00  $0.003
output             1,000     $12.00  $0.012
the call                             $0.015
reserved at most                     $0.015
`},
		{"of a provider", pricesFile, "my-model --provider europe --output 0", `
model   europe/my*
prices  gateway.yaml
since   always
tier    usual

part              tokens  a million   costs
input              1,000      $1.00  $0.001
the call                             $0.001
reserved at most                     $0.001
`},
		{"unpriced", "unpriced: free", "no-such-model --output 0", `
model   no-such-model
prices  unpriced of gateway.yaml
since   always
tier    usual

part              tokens  a million  costs
input              1,000      $0.00  $0.00
the call                             $0.00
reserved at most                     $0.00
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := outcome{exitFine, c.want[1:], ""}
			if diff := cmp.Diff(want, prices(t, c.file, strings.Fields(c.args)...), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What cannot be answered gets a hint and an exit code.
func TestPricesRefuse(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"gpt6-astra", `there is no price for "gpt6-astra": did you mean gpt-6-astra?`, exitFailed},
		{"something-else-entirely", `there is no price for "something-else-entirely": prices of the configuration may have one`, exitFailed},
		{"gpt-4o --provider europe/", `there is no price for "gpt-4o": prices of the configuration may have one`, exitFailed},
		{"--provider nobody", `there are no prices of the provider "nobody"`, exitFailed},
		{"a b", "ratelimit prices does not know what to do with \"b\"\nSee `ratelimit prices --help`.", exitUsage},
		{"a --input -1", "--input is -1: it must be 0 or more\nSee `ratelimit prices --help`.", exitUsage},
		{"a --cached 800 --cache-write 300", "--cache-write is 300: it must be at most 200, which is what is left of --input\nSee `ratelimit prices --help`.", exitUsage},
		{"a --tier slow", "--tier is \"slow\": it must be batch, flex, priority or fast\nSee `ratelimit prices --help`.", exitUsage},
		{"a --at soon", "--at is \"soon\": it must be a date such as 2027-01-01\nSee `ratelimit prices --help`.", exitUsage},
	} {
		want := outcome{c.code, "", "ratelimit: " + c.want + "\n"}
		if diff := cmp.Diff(want, run(t, append([]string{"prices"}, strings.Fields(c.args)...)...), cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
	if got := prices(t, "prices: {m: {}}", "m"); got.code != exitFailed || !strings.Contains(got.stderr, "gateway.yaml:1:10: prices.m: it has no prices") {
		t.Errorf("%+v", got)
	}
}

// The list fits a terminal, and has the configuration's prices first.
func TestListOfPrices(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	got := prices(t, pricesFile)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.code != exitFine || len(lines) < 1000 {
		t.Fatalf("code %d, %d lines, %s", got.code, len(lines), got.stderr)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	if diff := cmp.Diff("gpt-6-astra", strings.Fields(lines[5])[0]); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, strings.Join(lines[:10], "\n"))
	}
	if got := run(t, "prices", "--provider", "anthropic"); !strings.Contains(got.stdout, "\nclaude-opus-5-5 ") || strings.Contains(got.stdout, "gpt-4o") {
		t.Errorf("the list of Anthropic's models is %s", got.stdout)
	}
}

func TestPricesAsJSON(t *testing.T) {
	var call struct {
		Model          string
		Cost, Reserved json.Number
		Lines          []struct{ Part string }
	}
	got := prices(t, pricesFile, "gpt-6-astra", "--json", "--at", "2026-11-16")
	if err := json.Unmarshal([]byte(got.stdout), &call); err != nil || call.Cost != "0.0135" || call.Model != "gpt-6-astra" || len(call.Lines) != 3 {
		t.Errorf("%v: %+v of %s", err, call, got.stdout)
	}
	var all []struct{ Provider, Model string }
	got = run(t, "prices", "--json", "--provider", "openai")
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || len(all) < 50 || all[0].Provider != "openai" {
		t.Errorf("%v: %d models", err, len(all))
	}
}
