package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The 404 for a base URL without the provider or the version says what is missing.
func TestDidYouMean(t *testing.T) {
	r := newRig(t, "keys: off", mockprovider.Config{}) // the built-in providers are real ones: nothing may be sent
	for path, want := range map[string]string{
		"/v1/chat/completions": "did you mean /openai/v1/chat/completions?",
		"/chat/completions":    "did you mean /openai/v1/chat/completions?",
		"/v1/responses":        "did you mean /openai/v1/responses?",
		"/v1/models":           "did you mean /openai/v1/…?",
		"/v1/messages":         "did you mean /anthropic/v1/messages?",
		"/v1beta/models/gemini-2.5-pro:generateContent":  "did you mean /gemini/v1beta/models/…?",
		"/opnai/v1/chat/completions":                     "did you mean /openai/…?",
		"/Anthropic/v1/messages":                         "did you mean /anthropic/…?",
		"/openai/chat/completions":                       "did you mean /openai/v1/chat/completions? The base URL must end with /openai/v1",
		"/openai/models":                                 "did you mean /openai/v1/models?",
		"/anthropic/messages":                            "did you mean /anthropic/v1/messages?",
		"/gemini/models/gemini-2.5-pro:generateContent":  "did you mean /gemini/v1beta/models?",
		"/somewhere/v1/chat/completions":                 `no provider is named \"somewhere\". A path begins with one of /anthropic/`,
		"/":                                              "the path names no provider. A path begins with one of /anthropic/",
		"/rl-secretsecret-key/v1/chat/completions/other": "",
	} {
		a := r.post(t, path, hello)
		if a.status != 404 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		testkit.Equal(t, "the outcome of "+path, Refused, r.last(t).Outcome)
	}
}

// With keys required, clients without a key do not get the names of the providers.
func TestStrangersAreNotToldTheProviders(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	r := newRig(t, withKeys, mockprovider.Config{})
	key, _ := r.newKey(t, "search", "")
	for _, path := range []string{"/", "/v1/chat/completions", "/opnai/v1/chat/completions", "/somewhere?key=rl-none"} {
		if a := r.post(t, path, hello); a.status != 401 || strings.Contains(a.body, "openai") {
			t.Errorf("%s without a key: %d %s", path, a.status, a.body)
		}
		if a := r.post(t, path, hello, "Authorization", "Bearer "+key); a.status != 404 || !strings.Contains(a.body, "/openai/") {
			t.Errorf("%s with a key: %d %s", path, a.status, a.body)
		}
	}
	if a := r.post(t, "/somewhere?key="+key, hello); a.status != 404 {
		t.Errorf("with a key in the query: %d %s", a.status, a.body)
	}
}

// Paths without a version pass to other servers, whose paths may have none.
func TestPathsOfOtherServersPass(t *testing.T) {
	seen := newSeen()
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}", seen)
	r.post(t, "/openai/chat/completions", hello)
	if got := <-seen.requests; got.URL.Path != "/chat/completions" {
		t.Errorf("%s was asked for", got.URL.Path)
	}
}
