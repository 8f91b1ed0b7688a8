package gateway

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// identity is an identity provider that signs any claims.
type identity struct {
	url  string
	key  *rsa.PrivateKey
	down bool
}

func newIdentity(t testing.TB) *identity {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &identity{key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "1", Key: key.Public()}}})
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// token returns a token with these claims, beside those that make it valid.
func (s *identity) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{KeyID: "1", Key: s.key}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"iss": s.url, "aud": "gateway", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	text, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *identity) yaml(more string) string {
	return withKeys + "jwt: {issuer: " + s.url + ", jwks: " + s.url + "/keys, audience: gateway, claims: {project: team.path, user: sub, models: models}" + more + "}\n"
}

// A token of the issuer is as good as a virtual key: its claims say the project, the user and the models, no header
// replaces them, and the provider does not get it.
func TestTokensOfAnIssuer(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	id, upstream := newIdentity(t), newSeen()
	r := newRigBefore(t, strings.Replace(id.yaml(""), "user: sub", "user: uid", 1)+"users: {header: X-User-ID}\n", upstream)
	team := map[string]any{"path": "acme/search"}
	good := id.token(t, map[string]any{"team": team, "uid": "alice@example.com", "models": []string{"gpt-4*"}})
	for _, c := range []struct {
		name, path, field, value string
		status                   int
		want                     string
	}{
		{"bearer", chat, "Authorization", "Bearer " + good, 200, ""},
		{"a key's header", chat, "X-Api-Key", good, 200, ""},
		{"a header of its own", chat, "X-Gateway-Key", good, 200, ""},
		{"another model", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "models": "claude*"}), 403, "the token may not call"},
		{"no models", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "models": []string{}}), 403, "its claim models names no models"},
		{"a bad project", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": map[string]any{"path": "a//b"}}), 403, "its claim team.path"},
		{"no project", chat, "Authorization", "Bearer " + id.token(t, nil), 403, "its claim team.path must name a project"},
		{"a user that is no text", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "uid": 5}), 403, "its claim uid must be a text"},
		{"two models in a text", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "models": "claude* gemini*"}), 403, "the token may not call"},
		{"expired", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "exp": 5}), 401, "it has expired"},
		{"another audience", chat, "Authorization", "Bearer " + id.token(t, map[string]any{"team": team, "aud": "x"}), 401, "another audience"},
		{"forged", chat, "Authorization", "Bearer " + good[:len(good)-9] + "AAAAAAAAA", 401, "none of the issuer's keys"},
		{"none", chat, "Authorization", "Bearer sk-x", 401, "virtual key is needed"},
	} {
		a := r.post(t, c.path, hello, c.field, c.value, "X-User-ID", "mallory", "X-Project-ID", "other")
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if a.status != 200 {
			if strings.Contains(a.body, id.url) {
				t.Errorf("%s: the client learns of the issuer: %s", c.name, a.body)
			}
			continue
		}
		if rec := r.last(t); rec.Project != "acme/search" || rec.User != "alice@example.com" || rec.Key != "" {
			t.Errorf("%s: it was of %+v", c.name, rec)
		}
		got := <-upstream.requests
		<-upstream.bodies
		if got.Header.Get("Authorization") != "Bearer sk-of-the-provider" || got.Header.Get("X-Gateway-Key") != "" {
			t.Errorf("%s: %v", c.name, got.Header)
		}
		for name, values := range got.Header {
			if strings.Contains(strings.Join(values, " "), good[len(good)-20:]) {
				t.Errorf("%s: the token was sent in %s", c.name, name)
			}
		}
	}
	secret, _ := r.newKey(t, "search", "")
	if a := r.post(t, chat, hello, "Authorization", "Bearer "+secret); a.status != 200 || r.last(t).Project != "search" {
		t.Errorf("a virtual key beside it: %d %s", a.status, a.body)
	}
	if a := r.do(t, "GET", "/ratelimit/v1/me", "", "Authorization", "Bearer "+good); a.status != 200 || !strings.Contains(a.body, `"acme/search`) {
		t.Errorf("what is left: %d %s", a.status, a.body)
	}
}

// Tokens count for the limits of their projects, those without the claim for the one that the configuration names. If
// the issuer cannot be asked, the client is asked to try again; a reload that changes nothing keeps its keys.
func TestTokensAreLimited(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	id := newIdentity(t)
	yaml := id.yaml(", project: staff") + "projects: {staff: {requests_per_minute: 2, max_wait: 0s}}\n"
	r := newRig(t, yaml, mockprovider.Config{})
	for _, path := range []any{[]string{"a", "b"}, 5, ""} {
		token := id.token(t, map[string]any{"team": map[string]any{"path": path}})
		if a := r.post(t, chat, hello, "Authorization", "Bearer "+token); a.status != 403 || !strings.Contains(a.body, "its claim team.path must be a text") {
			t.Errorf("the project is %v: %d %s", path, a.status, a.body)
		}
	}
	token := "Bearer " + id.token(t, nil)
	var got []int
	for range 3 {
		got = append(got, r.post(t, chat, hello, "Authorization", token).status)
	}
	testkit.Equal(t, "three calls", []int{200, 200, 429}, got)
	id.down = true
	mock := r.Config().Providers["openai"].Deployments[""].BaseURL
	if err := r.Reload(gatewaytest.Config(t, yaml, mock)); err != nil {
		t.Fatal(err)
	}
	if a := r.post(t, chat, hello, "Authorization", "Bearer "+id.token(t, map[string]any{"n": 1})); a.status != 429 {
		t.Errorf("with keys that are known: %d %s", a.status, a.body)
	}
	if err := r.Reload(gatewaytest.Config(t, strings.Replace(yaml, "audience: gateway", "audience: [gateway, x]", 1), mock)); err != nil {
		t.Fatal(err)
	}
	if a := r.post(t, chat, hello, "Authorization", token); a.status != 503 || !strings.Contains(a.body, "cannot be verified now") || strings.Contains(a.body, "500") {
		t.Errorf("without: %d %s", a.status, a.body)
	}
}

// A client's own login to the provider passes through, and the gateway's key in X-Gateway-Key limits it all the same.
func TestClientLogin(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, `
keys: required
providers: {anthropic: {base_url: MOCK, client_login: true}}
projects: {team: {requests_per_minute: 1, max_wait: 0s}}
`, upstream)
	secret, _ := r.newKey(t, "team", "")
	login := []string{"Authorization", "Bearer sk-ant-oat01-of-the-client"}
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		want    string
	}{
		{"no key", login, 401, "needed in the header X-Gateway-Key"},
		{"a wrong key", append([]string{"X-Gateway-Key", strings.Repeat("x", 46)}, login...), 401, "X-Gateway-Key"},
		{"a key in place of the login", []string{"Authorization", "Bearer " + secret}, 401, "X-Gateway-Key"},
		{"a key in both", []string{"X-Gateway-Key", secret, "Authorization", "Bearer " + secret}, 401, "not forwarded"},
		{"a key in both, escaped", []string{"X-Gateway-Key", secret, "X-Api-Key", strings.Replace(secret, "-", "%2d", 1)}, 401, "not forwarded"},
		{"both", append([]string{"X-Gateway-Key", secret}, login...), 200, ""},
		{"again", append([]string{"X-Gateway-Key", secret}, login...), 429, "requests"},
	} {
		a := r.post(t, messages, `{"model":"claude-sonnet-5.5","max_tokens":9,"messages":[]}`, c.headers...)
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
	got := <-upstream.requests
	if got.Header.Get("Authorization") != login[1] || got.Header.Get("X-Gateway-Key") != "" || len(upstream.requests) != 0 {
		t.Errorf("the provider gets %v", got.Header)
	}
}
