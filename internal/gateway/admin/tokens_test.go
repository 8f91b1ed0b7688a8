package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// makeToken makes a token with the rights of the operator of the machine.
func makeToken(t testing.TB, r *rig, role keys.Role, project string) IssuedKey {
	t.Helper()
	body := fmt.Sprintf(`{"name": "the %s", "role": %q, "project": %q}`, role, role, project)
	return as[IssuedKey](t, r.want(t, 201, "POST", "/v1/tokens", body))
}

func (r *rig) sendAs(t testing.TB, token, method, path, body string) answer {
	t.Helper()
	return r.send(t, method, path, body, "Authorization", "Bearer "+token)
}

// needed is the least role for each route. A route that is not here fails the test.
var needed = map[string]keys.Role{
	"GET /healthz": "", "GET /readyz": "", "GET /session": "", "POST /session": "", "DELETE /session": "",
	"GET /metrics": keys.RoleMetrics, "GET /openapi.json": keys.RoleMetrics,

	"GET /v1/state": keys.RoleViewer, "GET /v1/config": keys.RoleViewer, "GET /v1/quotas": keys.RoleViewer, "GET /v1/quotas/{model...}": keys.RoleViewer,
	"GET /v1/projects": keys.RoleViewer, "GET /v1/projects/{project...}": keys.RoleViewer, "GET /v1/gateway": keys.RoleViewer, "GET /v1/keys": keys.RoleViewer,
	"GET /v1/overview": keys.RoleViewer, "GET /v1/overview/live": keys.RoleViewer, "GET /v1/overview/projects": keys.RoleViewer, "GET /v1/matrix": keys.RoleViewer,
	"GET /v1/history": keys.RoleViewer, "GET /v1/usage": keys.RoleViewer, "GET /v1/decisions": keys.RoleViewer, "GET /v1/decisions/{id}": keys.RoleViewer,
	"POST /v1/decide": keys.RoleViewer, "GET /v1/waiting": keys.RoleViewer, "GET /v1/events": keys.RoleViewer, "GET /v1/audit": keys.RoleViewer,

	"PUT /v1/quotas/{model...}": keys.RoleOperator, "PATCH /v1/quotas/{model...}": keys.RoleOperator, "PUT /v1/projects/{project...}": keys.RoleOperator,
	"PATCH /v1/projects/{project...}": keys.RoleOperator, "DELETE /v1/projects/{project...}": keys.RoleOperator, "POST /v1/keys": keys.RoleOperator,
	"PATCH /v1/keys/{id}": keys.RoleOperator, "POST /v1/keys/{id}/rotate": keys.RoleOperator, "DELETE /v1/keys/{id}": keys.RoleOperator,

	"POST /v1/reload": keys.RoleAdmin, "POST /v1/reset": keys.RoleAdmin, "PATCH /v1/gateway": keys.RoleAdmin,
	"GET /v1/tokens": keys.RoleAdmin, "POST /v1/tokens": keys.RoleAdmin, "POST /v1/tokens/{id}/rotate": keys.RoleAdmin, "DELETE /v1/tokens/{id}": keys.RoleAdmin,
}

// Each role may use the routes that are for it, and no other: on this machine as from afar, without any token in the
// configuration.
func TestRoles(t *testing.T) {
	r := newRig(t, usual)
	tokens := map[keys.Role]string{}
	for _, role := range keys.Roles {
		tokens[role] = makeToken(t, r, role, "").Secret
	}
	patterns := []string{"GET /metrics"}
	for _, to := range r.routes() {
		patterns = append(patterns, to.pattern)
	}
	for _, pattern := range patterns {
		role, known := needed[pattern]
		if !known {
			t.Errorf("%s: which role does it need?", pattern)
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		if strings.HasSuffix(path, "/live") || strings.HasSuffix(path, "/events") { // without their streams
			method = http.MethodHead
		}
		path = strings.NewReplacer("{project...}", "search", "{model...}", "gpt-4o", "{id}", "aaaaaaaaaa").Replace(path)
		for i, mine := range keys.Roles {
			req := httptest.NewRequest(method, path, strings.NewReader("{"))
			req.RemoteAddr, req.Host = "192.0.2.7:1234", "gateway.example"
			req.Header.Set("Authorization", "Bearer "+tokens[mine])
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			may := role == "" || i >= indexOfRole(role)
			if refused := w.Code == 403 && strings.Contains(w.Body.String(), "needs the role"); refused == may || w.Code == 401 {
				t.Errorf("%s as %s: %d %s", pattern, mine, w.Code, w.Body)
			}
		}
	}
}

func indexOfRole(role keys.Role) int {
	for i, r := range keys.Roles {
		if r == role {
			return i
		}
	}
	return -1
}

// A token that is bound to a project sees that project and all below it, changes what is inside, and learns of no
// other, not even of one whose name begins with its own.
func TestBoundTokens(t *testing.T) {
	r := newRig(t, usual+`
  acme: {requests_per_minute: 100}
  acme/a: {requests_per_minute: 10}
  acme2: {requests_per_minute: 10}
`)
	token := makeToken(t, r, keys.RoleOperator, "acme").Secret
	ours := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "acme/a"}`))
	others := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "acme2"}`))
	call := func(project string) string {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", r.clients+"/openai/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o","max_tokens":1,"messages":[]}`))
		req.Header.Set("X-Project-ID", project)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		defer resp.Body.Close()
		return resp.Header.Get("X-Gateway-Request-Id")
	}
	mine, theirs := call("acme/a"), call("acme2")
	for _, c := range []struct {
		want               int
		method, path, body string
	}{
		{200, "GET", "/v1/projects/acme", ""},
		{200, "GET", "/v1/projects/acme%2Fa", ""},
		{403, "GET", "/v1/projects/acme2", ""},
		{403, "GET", "/v1/projects/search", ""},
		{200, "PATCH", "/v1/projects/acme%2Fa", `{"requests_per_minute": 5}`},
		{200, "PATCH", "/v1/projects/acme%2Fnew", `{"requests_per_minute": 5}`},
		{200, "PATCH", "/v1/projects/acme%2Fnew", `{"fit": true, "max_wait": 1}`},
		{403, "PATCH", "/v1/projects/acme%2Fnew", `{"unknown_usage": "seen"}`}, // the limits of acme would be charged less
		{403, "PATCH", "/v1/projects/acme%2Fnew", `{"failed_calls": "free"}`},
		{403, "PATCH", "/v1/projects/acme", `{"requests_per_minute": 500}`},
		{403, "PUT", "/v1/projects/acme", `{"requests_per_minute": 500}`},
		{403, "DELETE", "/v1/projects/acme", ""},
		{403, "PATCH", "/v1/projects/acme2", `{"requests_per_minute": 5}`},
		{200, "GET", "/v1/projects", ""},
		{200, "GET", "/v1/projects?below=acme/a", ""},
		{403, "GET", "/v1/projects?below=acme2", ""},
		{400, "GET", "/v1/projects?below=acme&below=acme2", ""},
		{201, "POST", "/v1/keys", `{"project": "acme"}`},
		{403, "POST", "/v1/keys", `{"project": "acme2"}`},
		{200, "PATCH", "/v1/keys/" + ours.ID, `{"paused": true}`},
		{404, "PATCH", "/v1/keys/" + others.ID, `{"paused": true}`},
		{404, "POST", "/v1/keys/" + others.ID + "/rotate", `{}`},
		{404, "DELETE", "/v1/keys/" + others.ID, ""},
		{200, "GET", "/v1/decisions/" + mine, ""},
		{404, "GET", "/v1/decisions/" + theirs, ""},
		{403, "GET", "/v1/decisions?project=acme2", ""},
		{400, "GET", "/v1/decisions?project=acme&project=acme2", ""},
		{403, "GET", "/v1/usage?project=acme2", ""},
		{403, "GET", "/v1/usage?project=acme2&format=csv", ""},
		{403, "GET", "/v1/tokens", ""},
		{403, "GET", "/v1/history?project=search", ""},
		{403, "GET", "/v1/waiting?project=search", ""},
		{403, "GET", "/v1/events?project=search", ""},
		{200, "POST", "/v1/decide", `{"model": "gpt-4o", "project": "acme/a"}`},
		{403, "POST", "/v1/decide", `{"model": "gpt-4o", "project": "acme2"}`},
		{403, "POST", "/v1/decide", `{"model": "gpt-4o"}`},
		{400, "POST", "/v1/decide", `{"model": "gpt-4o", "key": "` + others.ID + `"}`},
		{200, "POST", "/v1/decide", `{"model": "gpt-4o", "key": "` + ours.ID + `"}`},
		{403, "GET", "/v1/overview", ""},
		{403, "GET", "/v1/overview/projects?below=search", ""},
		{403, "GET", "/v1/matrix", ""},
		{403, "GET", "/v1/state", ""},
		{403, "GET", "/v1/audit", ""},
		{403, "GET", "/v1/quotas", ""},
		{403, "GET", "/metrics", ""},
	} {
		if a := r.sendAs(t, token, c.method, c.path, c.body); a.status != c.want {
			t.Errorf("%s %s: %d %s: want %d", c.method, c.path, a.status, a.text, c.want)
		}
	}
	for _, path := range []string{"/v1/projects", "/v1/keys", "/v1/decisions", "/v1/usage?by=project", "/v1/history", "/v1/waiting", "/v1/overview/projects"} {
		if a := r.sendAs(t, token, "GET", path, ""); a.status != 200 || strings.Contains(a.text, "acme2") || strings.Contains(a.text, "search") {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	if a := r.sendAs(t, token, "GET", "/v1/usage?by=project&format=csv", ""); a.status != 200 || !strings.Contains(a.text, "acme/a,") || strings.Contains(a.text, "acme2") {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := r.sendAs(t, token, "GET", "/v1/decisions", ""); len(as[DecisionList](t, a).Decisions) != 1 {
		t.Errorf("their own decision is missing: %s", a.text)
	}
}

// Tokens are made, rotated and revoked like keys, the audit log names them, and they are good for nothing else.
func TestTokensLive(t *testing.T) {
	t.Setenv("ROLES_KEY", "sk-test")
	r := newRig(t, strings.Replace(usual, "base_url: MOCK", "base_url: MOCK\n    key: {env: ROLES_KEY}", 1)+"keys: required\n")
	made := makeToken(t, r, keys.RoleOperator, "")
	r.sendAs(t, made.Secret, "PATCH", "/v1/projects/search", `{"requests_per_minute": 5}`)
	log := as[AuditList](t, r.get(t, "/v1/audit"))
	if who := log.Entries[len(log.Entries)-1].Who; !strings.HasPrefix(who, "token the operator ("+made.ID+") 127.0.0.1:") {
		t.Errorf("it was %q", who)
	}
	if list := as[TokenList](t, r.get(t, "/v1/tokens")); len(list.Tokens) != 1 || list.Tokens[0].Role != keys.RoleOperator || strings.Contains(r.get(t, "/v1/tokens").text, made.Secret[14:]) {
		t.Errorf("%+v", list)
	}
	if list := as[KeyList](t, r.get(t, "/v1/keys")); len(list.Keys) != 0 {
		t.Errorf("a token is among the keys: %+v", list)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", r.clients+"/openai/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o","max_tokens":1,"messages":[]}`))
	req.Header.Set("Authorization", "Bearer "+made.Secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 401 {
		t.Errorf("a call with a token: %v %v", resp, err)
	}
	resp.Body.Close()

	next := as[IssuedKey](t, r.want(t, 200, "POST", "/v1/tokens/"+made.ID+"/rotate", `{}`))
	fromAfar := func(secret string) int {
		req := httptest.NewRequest("GET", "/v1/state", nil)
		req.RemoteAddr = "192.0.2.7:1234"
		req.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w.Code
	}
	testkit.Equal(t, "after a rotation", []int{403, 200}, []int{fromAfar(made.Secret), fromAfar(next.Secret)})
	r.want(t, 204, "DELETE", "/v1/tokens/"+made.ID, "")
	testkit.Equal(t, "after the end", 403, fromAfar(next.Secret))
	r.want(t, 404, "DELETE", "/v1/tokens/"+made.ID, "")
	if strings.Contains(r.logged.String(), made.Secret) || strings.Contains(r.get(t, "/v1/audit").text, made.Secret) {
		t.Error("a log has a secret")
	}
	for body, want := range map[string]string{
		`{"role": "viewer"}`:                                      "needs a name",
		`{"name": "x", "role": "root"}`:                           "it must be one of metrics, viewer, operator, admin",
		`{"name": "x"}`:                                           "it must be one of metrics, viewer, operator, admin",
		`{"name": "x", "role": "admin", "project": "acme"}`:       "is for all projects",
		`{"name": "x", "role": "metrics", "project": "acme"}`:     "is for all projects",
		`{"name": "x", "role": "viewer", "project": "acme//a"}`:   "acme//a",
		`{"name": "a\u0007", "role": "viewer", "project": "x"}`:   "control",
		`{"name": "x", "role": "viewer", "models": ["gpt-4o"]}`:   "models",
		`{"name": "x", "role": "viewer", "limit": {"dollars":1}}`: "limit",
	} {
		if a := r.want(t, 400, "POST", "/v1/tokens", body); !strings.Contains(a.text, want) {
			t.Errorf("%s: %s", body, a.text)
		}
	}
}

// A browser that signs in with a token has the rights of the token, until the token is revoked or it signs out.
func TestSessionsOfTokens(t *testing.T) {
	r := newRig(t, withToken(t))
	admin := []string{"Authorization", "Bearer " + secretToken}
	viewer := as[IssuedKey](t, r.send(t, "POST", "/v1/tokens", `{"name": "wall", "role": "viewer"}`, admin...))
	signIn := func() (answer, string) {
		a := r.want(t, 200, "POST", "/session", `{"token": "`+viewer.Secret+`"}`)
		cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
		return a, cookie
	}
	a, cookie := signIn()
	testkit.Equal(t, "the session", Session{NeedsToken: true, SignedIn: true, Role: keys.RoleViewer}, as[Session](t, a))
	if strings.Contains(cookie, viewer.Secret[14:]) {
		t.Error("the cookie has the secret")
	}
	status := func(method, path, body, cookie string) int {
		return r.send(t, method, path, body, "Cookie", cookie).status
	}
	testkit.Equal(t, "with the cookie", []int{200, 403}, []int{status("GET", "/v1/state", "", cookie), status("POST", "/v1/keys", `{"project": "search"}`, cookie)})
	testkit.Equal(t, "a forged one", 401, status("GET", "/v1/state", "", strings.Replace(cookie, ".", ".9", 1)))
	testkit.Equal(t, "signed out", []int{204, 401}, []int{status("DELETE", "/session", "", cookie), status("GET", "/v1/state", "", cookie)})
	_, cookie = signIn()
	_ = cookie
	r.send(t, "DELETE", "/v1/tokens/"+viewer.ID, "", admin...)
	testkit.Equal(t, "revoked", 401, status("GET", "/v1/state", "", cookie))
}
