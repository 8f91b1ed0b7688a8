package config_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func redacted(t *testing.T, c *config.Config) string {
	t.Helper()
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Without its secrets, the configuration as JSON is a file with the same meaning, since JSON
// is YAML. It names the default quotas.
func TestRedactedMeansTheSame(t *testing.T) {
	for _, c := range []*config.Config{withoutFile(t), parsed(t, wholeFile(t))} {
		text := redacted(t, c)
		for _, p := range c.Providers {
			for i := range p.Models {
				p.Models[i].IsDefault = false
			}
		}
		differ(t, text, c, parsed(t, text))
	}
}

// wholeFile has a value in every field except secrets.
func wholeFile(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	certificate(t, dir)
	return strings.ReplaceAll(wholeText, "%s", dir)
}

const wholeText = `
listen: ":1"
tls: {cert: "%s/cert.pem", key: "%s/key.pem"}
admin: {listen: off, tls: {cert: "%s/cert.pem", key: "%s/key.pem"}, audit: e}
state: redis://127.0.0.1:6379/3
on_store_loss: share
providers:
  openai:
    timeout: 1h2m3s
    retries: 2
    http2: true
    margin: 250ms
    models:
      z: {max_rpm: 1, max_tpm: 2, max_rpd: 3, max_input_tpm: 4, max_output_tpm: 5, max_tpd: 6, max_concurrent: 7, day_resets_at: "00:00 UTC", auto: true, margin: 3s, reserve_tokens: expected, on_overrun: cut, aliases: [y, "<&>"]}
      none: {max_rpm: 1, margin: 0s}
      its: {max_rpm: 1}
      "a*": {}
  azure: {kind: azure, deployments: {eu: {base_url: "https://eu"}, us: {base_url: "http://us/x"}}}
defaults: {max_wait: 0, models: [a]}
projects:
  p: {requests_per_minute: 1, requests_per_hour: 2, requests_per_day: 3, tokens_per_minute: 4, tokens_per_hour: 5, tokens_per_day: 6,
    tokens_per_month: 7, max_concurrent: 8, weight: 9, priority: 10, max_wait: 11ms, models: ["*"], dollars_per_hour: 0.000000001,
    dollars_per_day: 1_234.5, dollars_per_week: 3, dollars_per_month: 4, dollars: 9_007_199, reserve: most, on_overrun: cut, fit: true, fit_min: 17, resets: {month: 31, week: sunday, at: "23:59", zone: Asia/Kolkata}}
  p/q: {dollars: 1, max_wait: 5s}
  p/*: {requests_per_day: 5}
users: {header: x-who, field: user}
runs: {dollars: 2.5, tokens: 3, calls: 4, reserve: expected, on_overrun: cut, expires: 1h}
server: {max_body: 1025, max_bodies: 3MiB, max_header: 5KiB, header_timeout: 1ms, body_timeout: 1h, write_timeout: 90s, idle_timeout: 1m, drain: 0, while_waiting: early_hints}
thresholds: {at: [1%, 99%]}
log: {level: off, sample: 3}
prices:
  z: {input: 2.50, cached_input: 0, cache_write: 1, cache_write_hour: 2, audio_input: 3, cached_audio: 4, image_input: 5, output: 6,
    reasoning: 7, audio_output: 8, image_output: 9, request: 0.001, above: {tokens: 1_000, input: 10}, batch: 50%, flex: {input: 1},
    priority: {output: 2_000.000000001, above: [{tokens: 1, input: 1}, {tokens: 2, input: 2}]}, from: 2026-01-01}
  "azure/<&>*": [{input: 1}, {input: 2, from: 2026-01-01}, {input: 3, from: 2026-02-28}]
unpriced: {input: 100, output: 200}
`

func TestRedactedHasNoSecret(t *testing.T) {
	c := parsed(t, everything(t))
	c.State = "redis://me:hunter2@sentinel:1?addr=other&password=hunter2"
	text := redacted(t, c)
	if strings.Contains(text, "the secret") || strings.Contains(text, "hunter2") {
		t.Errorf("a secret is seen in %s", text)
	}
	if !strings.Contains(text, `"state": "redis://sentinel:1"`) {
		t.Errorf("no state in %s", text)
	}
	if n := len(regexp.MustCompile(`"(key|token|secret|client_secret)": "\[secret\]"`).FindAllString(text, -1)); n != 7 {
		t.Errorf("%d secrets are shown to be there in %s", n, text)
	}
}
