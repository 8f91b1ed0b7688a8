package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// With several accounts, a provider's headers for one account raise a guessed quota that is
// too low, and never lower it.
func TestGuessesAreRaisedForSeveralAccounts(t *testing.T) {
	tokens := map[string]string{"Bearer a": "2000000", "Bearer b": "10000"}
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ratelimit-Limit-Tokens", tokens[r.Header.Get("Authorization")])
		w.Write([]byte(`{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`))
	}))
	r.setup.Load().upstreams["openai"].accounts.observe([]string{"x"})
	for _, c := range []struct {
		key  string
		want int
	}{{"Bearer b", 30_000}, {"Bearer a", 2_000_000}, {"Bearer b", 2_000_000}} {
		if a := r.do(t, "POST", chat, hello, "Authorization", c.key); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		r.settled(t)
		if q, _ := r.Models().Quota("gpt-4o"); q.MaxTPM != c.want {
			t.Errorf("%s: %d tokens a minute, want %d", c.key, q.MaxTPM, c.want)
		}
	}
}

// The provider's headers replace a guessed quota. Once, gpt-4o stayed at 30,000 tokens a minute
// although the headers have 2,000,000.
func TestGuessedQuotasFollowTheProvider(t *testing.T) {
	said := mockprovider.Limit{Requests: 10_000, Tokens: 2_000_000}
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ratelimit-Limit-Requests", fmt.Sprint(said.Requests))
		w.Header().Set("X-Ratelimit-Limit-Tokens", fmt.Sprint(said.Tokens))
		w.Write([]byte(`{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`))
	}))
	expect := func(tpm int, origin Origin) {
		t.Helper()
		r.settled(t)
		if q, _ := r.Models().Quota("gpt-4o"); q.MaxTPM != tpm || r.Origin("gpt-4o") != origin {
			t.Errorf("%+v, %s: want %d, %s", q, r.Origin("gpt-4o"), tpm, origin)
		}
	}
	expect(30_000, Guessed)
	// No prompt is too long for a guess: otherwise the provider's headers would never come.
	long := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("word ", 100_000))
	if a := r.post(t, chat, long); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	expect(2_000_000, Learned)
	if err := r.Reload(r.Config()); err != nil {
		t.Fatal(err)
	}
	expect(2_000_000, Learned)
}

// Guesses lists models of several deployments, too, each of which has its own quota.
func TestGuessesOfDeployments(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK, deployments: {a: {}, b: {}}, models: {gpt-4o: {max_rpm: 9}}}, gemini: {models: {}}}", mockprovider.Config{})
	named := func(m config.Model) bool { return m.Name == "gpt-4o" }
	if got := r.Guesses("openai"); len(got) == 0 || slices.ContainsFunc(got, named) {
		t.Errorf("of two deployments %+v are guessed", got)
	}
	if got := r.Guesses("gemini"); len(got) == 0 {
		t.Error("of a single one none is guessed")
	}
}

// The provider's headers lower a guessed quota, too.
func TestGuessedQuotasAreLowered(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK}}", mockprovider.Config{Limits: map[string]mockprovider.Limit{"gpt-4o": {Requests: 3, Tokens: 10_000}}})
	if a := r.post(t, chat, hello); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r.settled(t)
	if q, _ := r.Models().Quota("gpt-4o"); q.MaxTPM != 10_000 || q.MaxRPM != 3 || r.Origin("gpt-4o") != Learned {
		t.Errorf("%+v, %s", q, r.Origin("gpt-4o"))
	}
}

// A quota that the file or the admin API has set is no guess.
func TestSetQuotasStay(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 500, max_tpm: 30_000}}}}",
		mockprovider.Config{Limits: map[string]mockprovider.Limit{"gpt-4o": {Requests: 3, Tokens: 10_000}}})
	r.post(t, chat, hello)
	r.settled(t)
	if q, _ := r.Models().Quota("gpt-4o"); q.MaxTPM != 30_000 || r.Origin("gpt-4o") != Set {
		t.Errorf("%+v, %s", q, r.Origin("gpt-4o"))
	}
	if err := r.Models().SetQuota("o1", ratelimit.ModelQuota{MaxRPM: 1}); err != nil || r.Origin("o1") != Set {
		t.Errorf("%v, %s", err, r.Origin("o1"))
	}
}
