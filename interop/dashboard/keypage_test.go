package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
)

const withKeys = `
state: memory
listen: 127.0.0.1:0
keys: required
providers:
  openai: {base_url: MOCK, key: {env: KEY_PAGE_TEST}, models: {gpt-large: {max_rpm: 1000, max_tpm: 100000}}}
prices: {gpt-large: {input: 2, output: 10}}
projects:
  acme: {dollars_per_month: 500}
  acme/chat: {requests_per_day: 2, max_wait: 0s}
  other: {requests_per_day: 987654}
`

// The holder of a key signs in on the clients' listener, sees what is left and what the key has used, and nothing of
// others.
func TestKeyPage(t *testing.T) {
	t.Setenv("KEY_PAGE_TEST", "sk-test")
	r := start(t, withKeys, "listen: 127.0.0.1:0")
	secret := r.api(t, "POST", "/v1/keys", map[string]any{"project": "acme/chat", "name": "laptop"})["secret"].(string)
	for range 3 { // the last one is denied
		req, err := http.NewRequest("POST", r.clients+"/openai/v1/chat/completions", strings.NewReader(`{"model":"gpt-large","max_tokens":20,"messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		send[any](t, req, nil)
	}
	b := open(t, &rig{url: r.clients}, "/ratelimit", "401 (Unauthorized)")
	b.accessible("the form")
	b.fill("key", "rl-nonsense")
	b.press("Sign in")
	b.shows("[role=alert]", "not a valid key")
	b.accessible("the form with a wrong key")
	b.fill("key", secret)
	b.press("Sign in")
	b.shows("h1", "What is left")
	b.shows("main", "used up")
	b.shows("main", "Calls: 2.")
	b.accessible("the page")
	if text := eval[string](b, `document.documentElement.outerHTML + document.cookie`); strings.Contains(text, "987") || strings.Contains(text, secret) {
		t.Errorf("the page shows what it must not: %s", text)
	}
	b.size(360, 740)
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("the page is %d pixels wide", wide)
	}
	b.press("Sign out")
	b.shows("label", "Virtual key")
}
