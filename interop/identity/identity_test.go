// Package identity tests the gateway with an identity provider of others.
package identity

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// rig is a gateway with its admin API, and an identity provider.
type rig struct {
	id             *mockoidc.MockOIDC
	gateway        *gateway.Gateway
	clients, admin string

	replace func(claims jwt.MapClaims) (token string, err error) // makes the tokens of users who sign in; nil: the provider does
}

const adminToken = "the-token-of-the-test"

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{}
	id, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	id.AddMiddleware(r.replaceTokens)
	if err := id.Start(listener, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { id.Shutdown() })
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(adminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OIDC_SECRET", id.ClientSecret)
	t.Setenv("PROVIDER_KEY", "sk-test")
	api := httptest.NewUnstartedServer(nil)
	url := "http://" + api.Listener.Addr().String()
	cfg := gatewaytest.Config(t, `
state: memory
keys: required
providers: {openai: {base_url: MOCK, key: {env: PROVIDER_KEY}}}
projects: {acme: {requests_per_minute: 100}, other: {requests_per_minute: 100}}
jwt: {issuer: "`+id.Issuer()+`", audience: "`+id.ClientID+`", claims: {project: team, user: sub}}
admin:
  token: {file: `+file+`}
  oidc:
    issuer: `+id.Issuer()+`
    client_id: `+id.ClientID+`
    client_secret: {env: OIDC_SECRET}
    url: `+url+`
    scopes: [openid, profile, email, groups]
    roles: [{group: sre, role: admin}, {group: acme-team, role: operator, project: acme}]
`, provider.URL)
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	a, err := admin.New(g, admin.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	api.Config.Handler = a
	api.Start()
	t.Cleanup(api.Close)
	clients := httptest.NewServer(g)
	t.Cleanup(clients.Close)
	r.id, r.gateway, r.clients, r.admin = id, g, clients.URL, api.URL
	return r
}

// replaceTokens replaces the token of each user who signs in by what the test makes of its claims.
func (r *rig) replaceTokens(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.replace == nil || req.URL.Path != mockoidc.TokenEndpoint {
			next.ServeHTTP(w, req)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, req)
		var fields map[string]any
		claims := jwt.MapClaims{}
		err := json.Unmarshal(answer.Body.Bytes(), &fields)
		if err == nil {
			_, _, err = jwt.NewParser().ParseUnverified(fields["id_token"].(string), claims)
		}
		if err == nil {
			fields["id_token"], err = r.replace(claims)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(fields)
	})
}

// token returns a token of the provider for a caller of the project acme, with some claims that differ.
func (r *rig) token(t *testing.T, more jwt.MapClaims) string {
	t.Helper()
	text, err := r.id.Keypair.SignJWT(r.claims(more))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (r *rig) claims(more jwt.MapClaims) jwt.MapClaims {
	now := time.Now()
	all := jwt.MapClaims{"iss": r.id.Issuer(), "aud": r.id.ClientID, "sub": "alice", "team": "acme", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
	maps.Copy(all, more)
	return all
}

// call makes a call with a token, and returns the status of its answer.
func (r *rig) call(t *testing.T, token string) int {
	t.Helper()
	req, _ := http.NewRequest("POST", r.clients+"/openai/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o","max_tokens":5,"messages":[]}`))
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// browser is a client that keeps cookies and follows redirections.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// sessionOf returns what a browser may do.
func (r *rig) sessionOf(t *testing.T, c *http.Client) (s admin.Session) {
	t.Helper()
	_, text := get(t, c, r.admin+"/session")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(text, err)
	}
	return s
}

// Users sign in with the provider (code flow with PKCE), and their groups say what they may do.
func TestSignIn(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		groups []string
		want   admin.Session
	}{
		{[]string{"staff", "sre"}, admin.Session{NeedsToken: true, SignedIn: true, Role: "admin", OIDC: true}},
		{[]string{"acme-team"}, admin.Session{NeedsToken: true, SignedIn: true, Role: "operator", Project: "acme", OIDC: true}},
		{[]string{"staff"}, admin.Session{NeedsToken: true, OIDC: true}},
		{nil, admin.Session{NeedsToken: true, OIDC: true}},
	} {
		r.id.QueueUser(&mockoidc.MockUser{Subject: "1", Email: "alice@example.com", Groups: c.groups})
		b := browser(t)
		status, text := get(t, b, r.admin+"/login")
		if got := r.sessionOf(t, b); got != c.want {
			t.Errorf("%v: %d %s, then %+v", c.groups, status, text, got)
		}
		if !c.want.SignedIn && (status != 403 || !strings.Contains(text, "none of your groups has a role")) {
			t.Errorf("%v: %d %s", c.groups, status, text)
		}
		if c.want.Project == "acme" {
			if status, text := get(t, b, r.admin+"/v1/projects/other"); status != 403 {
				t.Errorf("another project: %d %s", status, text)
			}
			req, _ := http.NewRequest("POST", r.admin+"/v1/keys", strings.NewReader(`{"project": "acme"}`))
			req.Header.Set("Content-Type", "application/json")
			if resp, err := b.Do(req); err != nil || resp.StatusCode != 201 {
				t.Error(resp, err)
			}
			req, _ = http.NewRequest("GET", r.admin+"/v1/audit", nil)
			req.Header.Set("Authorization", "Bearer "+adminToken)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.Contains(string(text), `"who":"session alice@example.com 127.0.0.1:`) {
				t.Errorf("the audit log does not name the user: %s", text)
			}
		}
	}
}

// A callback that this browser has not begun, or that has another state, a code that somebody else has got, or one that
// was used before, begins no session; nor does a token for another client or one that the provider's key has not signed.
func TestAttacks(t *testing.T) {
	r := start(t)
	noRedirect := func(c *http.Client) *http.Client {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return c
	}
	location := func(c *http.Client, at string) *url.URL {
		t.Helper()
		resp, err := c.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		u, err := resp.Location()
		if err != nil {
			t.Fatal(resp.StatusCode, err)
		}
		return u
	}
	r.id.QueueUser(&mockoidc.MockUser{Subject: "1", Groups: []string{"sre"}})
	victim, attacker := noRedirect(browser(t)), noRedirect(browser(t))
	callback := location(attacker, location(attacker, r.admin+"/login").String())
	if q := location(victim, r.admin+"/login").Query(); q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == callback.Query().Get("state") {
		t.Errorf("the provider is asked with %v", q)
	}
	for name, at := range map[string]string{
		"somebody else's callback": callback.String(),
		"no state":                 r.admin + "/login/callback?code=" + callback.Query().Get("code"),
		"an error":                 r.admin + "/login/callback?error=access_denied&state=x",
		"nothing":                  r.admin + "/login/callback",
	} {
		if status, text := get(t, victim, at); status < 400 || r.sessionOf(t, victim).SignedIn {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := get(t, noRedirect(browser(t)), callback.String()); status != 400 {
		t.Errorf("a browser that has begun nothing: %d %s", status, text)
	}
	if status, text := get(t, attacker, callback.String()); status != 302 {
		t.Fatalf("their own callback: %d %s", status, text)
	}
	if status, _ := get(t, noRedirect(browser(t)), callback.String()); status < 400 {
		t.Error("a code was used twice")
	}
	audience := r.id.ClientID
	r.id.ClientID = "another-client" // the token is for that one
	again := noRedirect(browser(t))
	begun := location(again, r.admin+"/login")
	q := begun.Query()
	q.Set("client_id", r.id.ClientID)
	begun.RawQuery = q.Encode()
	r.id.QueueUser(&mockoidc.MockUser{Subject: "1", Groups: []string{"sre"}})
	back := location(again, begun.String())
	if status, text := get(t, again, back.String()); status < 400 || r.sessionOf(t, again).SignedIn {
		t.Errorf("a token for another client: %d %s", status, text)
	}
	r.id.ClientID = audience
}

// Clients send the provider's tokens in place of virtual keys. Clocks may differ a little; another audience, another
// issuer, another algorithm and no signature are refused.
func TestCallers(t *testing.T) {
	r := start(t)
	symmetric, err := jwt.NewWithClaims(jwt.SigningMethodHS256, r.claims(nil)).SignedString([]byte(r.id.ClientSecret))
	if err != nil {
		t.Fatal(err)
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, r.claims(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"valid":                    {r.token(t, nil), 200},
		"a clock that is ahead":    {r.token(t, jwt.MapClaims{"iat": now.Add(30 * time.Second).Unix(), "nbf": now.Add(30 * time.Second).Unix()}), 200},
		"a clock that is behind":   {r.token(t, jwt.MapClaims{"exp": now.Add(-30 * time.Second).Unix()}), 200},
		"expired":                  {r.token(t, jwt.MapClaims{"exp": now.Add(-5 * time.Minute).Unix()}), 401},
		"not yet valid":            {r.token(t, jwt.MapClaims{"nbf": now.Add(5 * time.Minute).Unix()}), 401},
		"another audience":         {r.token(t, jwt.MapClaims{"aud": "somebody"}), 401},
		"another issuer":           {r.token(t, jwt.MapClaims{"iss": "https://evil.example"}), 401},
		"a shared secret":          {symmetric, 401},
		"no signature":             {none, 401},
		"no project":               {r.token(t, jwt.MapClaims{"team": nil}), 403},
		"a project that is no one": {r.token(t, jwt.MapClaims{"team": "a//b"}), 403},
	} {
		if got := r.call(t, c.token); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if rec := r.gateway.Recent("acme", 0, 1); len(rec) == 0 || rec[0].User != "alice" {
		t.Errorf("%+v", rec)
	}
}
