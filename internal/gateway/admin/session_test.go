package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

var signInBody = fmt.Sprintf(`{"token": %q}`, secretToken)

// signedIn signs in, and returns the header with the cookie.
func (r *rig) signedIn(t *testing.T) string {
	t.Helper()
	a := r.want(t, 200, "POST", "/session", signInBody)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return cookie
}

func TestSession(t *testing.T) {
	r := newRig(t, withToken(t))
	if s := as[Session](t, r.get(t, "/session")); s != (Session{NeedsToken: true}) {
		t.Errorf("before the sign-in: %+v", s)
	}
	cookie := r.signedIn(t)
	if a := r.send(t, "GET", "/session", "", "Cookie", cookie); as[Session](t, a) != (Session{NeedsToken: true, SignedIn: true, Role: keys.RoleAdmin}) {
		t.Errorf("after the sign-in: %s", a.text)
	}
	for _, c := range []struct {
		name, method string
		headers      []string
		want         int
	}{
		{"the cookie reads", "GET", []string{"Cookie", cookie}, 200},
		{"the cookie changes", "PUT", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"}, 200},
		{"a page of another site", "PUT", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403},
		{"one that reads", "GET", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403},
		{"a page of another port", "PUT", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser", "PUT", []string{"Cookie", cookie, "Origin", "https://evil.example"}, 403},
		{"another cookie", "GET", []string{"Cookie", cookie + "x"}, 401},
		{"an empty cookie", "GET", []string{"Cookie", strings.Split(cookie, "=")[0] + "="}, 401},
		{"two cookies, one of them right", "GET", []string{"Cookie", cookie + "x; " + cookie}, 200},
		{"a wrong token beside the cookie", "GET", []string{"Cookie", cookie, "Authorization", "Bearer wrong"}, 401},
	} {
		body := map[string]string{"PUT": `{"requests_per_minute": 5}`}[c.method]
		if a := r.send(t, c.method, "/v1/projects/new", body, c.headers...); a.status != c.want {
			t.Errorf("%s: %d %s: want %d", c.name, a.status, a.text, c.want)
		}
	}
	log := as[AuditList](t, r.send(t, "GET", "/v1/audit", "", "Cookie", cookie))
	if last := log.Entries[len(log.Entries)-1]; !strings.HasPrefix(last.Who, "session 127.0.0.1:") {
		t.Errorf("the audit log has %q", last.Who)
	}
	if a := r.send(t, "DELETE", "/session", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("another site signs out: %d", a.status)
	}
	if a := r.send(t, "DELETE", "/session", "", "Cookie", cookie); a.status != 204 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("sign-out: %d %v", a.status, a.header)
	}
	if a := r.send(t, "GET", "/v1/state", "", "Cookie", cookie); a.status != 401 {
		t.Errorf("after the sign-out: %d", a.status)
	}
}

func TestCookie(t *testing.T) {
	r := newRig(t, withToken(t))
	for _, c := range []struct {
		name, host string
		tls        *tls.ConnectionState
		want       string
	}{
		{"plain", "127.0.0.1:8081", nil, "ratelimit-session-8081=…; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"},
		{"TLS", "gateway.internal", &tls.ConnectionState{}, "ratelimit-session-0=…; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict"},
	} {
		req := httptest.NewRequest("POST", "/session", strings.NewReader(signInBody))
		req.Header.Set("Content-Type", "application/json")
		req.Host, req.TLS = c.host, c.tls
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		name, rest, _ := strings.Cut(w.Header().Get("Set-Cookie"), "=")
		value, rest, _ := strings.Cut(rest, ";")
		if got := name + "=…;" + rest; got != c.want || len(value) < 26 {
			t.Errorf("%s: %d %s, a value of %d letters: want %s", c.name, w.Code, got, len(value), c.want)
		}
	}
}

func TestSignInRefuses(t *testing.T) {
	r := newRig(t, withToken(t))
	for _, c := range []struct {
		name, body string
		headers    []string
		want       int
	}{
		{"a wrong token", `{"token": "wrong"}`, nil, 401},
		{"an empty token", `{"token": ""}`, nil, 401},
		{"no token", `{}`, nil, 401},
		{"no JSON", `token`, nil, 400},
		{"an unknown field", `{"password": "x"}`, nil, 400},
		{"a form", signInBody, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a page of another site", signInBody, []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		a := r.send(t, "POST", "/session", c.body, c.headers...)
		if a.status != c.want || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s: want %d", c.name, a.status, a.text, c.want)
		}
	}
	open := newRig(t, usual)
	if s := as[Session](t, open.get(t, "/session")); s != (Session{SignedIn: true, Role: keys.RoleAdmin}) {
		t.Errorf("without a token: %+v", s)
	}
	open.want(t, 409, "POST", "/session", signInBody)
}

// After ten failures from an address, the next sign-in must wait, even with the right token. Other addresses need not.
func TestSignInSlowsDown(t *testing.T) {
	r := newRig(t, withToken(t))
	from := func(address, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", "/session", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.RemoteAddr = address
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w
	}
	for i := range 10 {
		if w := from(fmt.Sprintf("[2001:db8::%d]:99", i), `{"token": "guess"}`); w.Code != 401 {
			t.Fatalf("sign-in %d: %d", i, w.Code)
		}
	}
	if w := from("[2001:db8::77]:99", signInBody); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the right token after failures: %d %v", w.Code, w.Header())
	}
	for range 20 {
		if w := from("192.0.2.7:99", signInBody); w.Code != 200 {
			t.Fatalf("sign-ins that succeed, from another address: %d %s", w.Code, w.Body)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, err := control.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newSessions(board)
		valid := func(value, token string) bool { _, ok := s.find(value, token); return ok }
		value := s.begin(session{}, "token")
		time.Sleep(sessionLength - time.Second)
		if !valid(value, "token") || valid(value, "another token") || valid("", "token") {
			t.Error("a session is valid until it ends, and only with its token")
		}
		time.Sleep(time.Second)
		if valid(value, "token") {
			t.Error("it is valid after its end")
		}
		first, second := s.begin(session{}, "token"), s.begin(session{}, "token")
		found, _ := s.find(first, "token")
		if err := s.board.EndSession(t.Context(), found.ID, found.Ends); err != nil || valid(first, "token") || !valid(second, "token") {
			t.Errorf("one of two sessions was ended: %v", err)
		}
	})
}

// A cookie that somebody has written, or changed, is no session.
func TestForgedSessions(t *testing.T) {
	r := newRig(t, withToken(t))
	cookie := r.signedIn(t)
	name, value, _ := strings.Cut(cookie, "=")
	body, mac, _ := strings.Cut(value, ".")
	longer := base64.RawURLEncoding.EncodeToString([]byte(`{"id":"x","ends":99999999999}`))
	for _, forged := range []string{longer + "." + mac, longer + ".", longer, body, "." + mac, body + "." + strings.ToUpper(mac), "%%." + mac} {
		if a := r.send(t, "GET", "/v1/state", "", "Cookie", name+"="+forged); a.status != 401 {
			t.Errorf("%s: %d", forged, a.status)
		}
	}
}

// Whoever begins a sign-in gets a signed cookie. To try tokens on it must be slow, so the token itself is not the key.
func TestSignaturesAreSlowToGuess(t *testing.T) {
	body, sent, _ := strings.Cut(signed(pending{Ends: 1}, "login", "short"), ".")
	mac := hmac.New(sha256.New, []byte("short"))
	mac.Write([]byte("ratelimit login " + body))
	if sent == base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) {
		t.Error("the token is the key of the signature")
	}
	var got pending
	if !unsign(body+"."+sent, "login", "short", &got) || got.Ends != 1 || unsign(body+"."+sent, "login", "another", &got) || unsign(body+"."+sent, "session", "short", &got) {
		t.Errorf("%+v", got)
	}
}

// Gateways with one token and one store know each other's sessions, and so does one that has started anew. A session
// that was signed out at one of them has ended for all, while Redis does not answer for this browser alone.
func TestSessionsOfAFleet(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.New(t).Addr)
	yaml := strings.Replace(withToken(t), "state: memory", "state: "+proxy.PatientURL(), 1)
	one, two := newRig(t, yaml), newRig(t, yaml)
	_, value, _ := strings.Cut(one.signedIn(t), "=")
	status := func(r *rig) int {
		_, port, _ := strings.Cut(strings.TrimPrefix(r.url, "http://"), ":")
		return r.send(t, "GET", "/v1/audit", "", "Cookie", "ratelimit-session-"+port+"="+value).status
	}
	if status(one) != 200 || status(two) != 200 || status(newRig(t, yaml)) != 200 {
		t.Errorf("a session of one gateway: %d there, %d at another one", status(one), status(two))
	}
	cookie := two.signedIn(t)
	if a := two.send(t, "DELETE", "/session", "", "Cookie", strings.Split(cookie, "=")[0]+"="+value); a.status != 204 {
		t.Fatalf("sign-out at another gateway: %d %s", a.status, a.text)
	}
	testkit.Eventually(t, "the session has ended at both", func() bool { return status(one) == 401 && status(two) == 401 })
	proxy.Cut()
	a := two.send(t, "DELETE", "/session", "", "Cookie", cookie)
	if a.status != 503 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("sign-out while Redis is lost: %d %s %v", a.status, a.text, a.header)
	}
}

// A stream ends when the browser signs out.
func TestStreamsEndWithTheirSession(t *testing.T) {
	r := newRig(t, withToken(t))
	cookie := r.signedIn(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	if a := r.send(t, "DELETE", "/session", "", "Cookie", cookie); a.status != 204 {
		t.Fatal(a.status)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // it returns at the stream's end
		t.Error(err)
	}
}

// A user whose role a reload has bound to a project sees no stream of all projects any more, and has the role from then
// on.
func TestStreamsEndWithTheirRole(t *testing.T) {
	r := newRig(t, withToken(t))
	roles := func(role config.GroupRole) {
		cfg := *r.gateway.Config()
		cfg.Admin.OIDC = &config.OIDC{Issuer: "https://login.example.com", ClientID: "dashboard", Roles: []config.GroupRole{role}}
		if err := r.gateway.Reload(&cfg); err != nil {
			t.Fatal(err)
		}
	}
	roles(config.GroupRole{Group: "sre", Role: keys.RoleAdmin})
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	cookie := cookieName(&http.Request{Host: req.Host}) + "=" + r.Admin.sessions.begin(session{User: "alice", Group: "sre", Issuer: "https://login.example.com", Client: "dashboard"}, secretToken)
	req.Header.Set("Cookie", cookie)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	roles(config.GroupRole{Group: "sre", Role: keys.RoleViewer, Project: "acme"})
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // it returns at the stream's end
		t.Error(err)
	}
	if a := r.send(t, "GET", "/v1/audit", "", "Cookie", cookie); a.status != 403 {
		t.Errorf("the audit log: %d %s", a.status, a.text)
	}
}

// Pages need no token, and have only their own paths. Without pages there is nothing at these.
func TestPagesNeedNoToken(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	with := newRigWith(t, withToken(t), Options{Pages: pages})
	without := newRig(t, usual)
	for path, want := range map[string]string{"/": "page /", "/assets/app.js": "page /assets/app.js", "/v1/state": "", "/assets": "", "/v1/assets/": ""} {
		w := httptest.NewRecorder()
		with.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if want != "" && w.Body.String() != want || want == "" && w.Code != 401 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	without.want(t, 404, "GET", "/", "")
}

// A session of a user ends when the configuration names another issuer or another client of it: nobody knows whom the
// same group has there.
func TestSessionsEndWithTheirIssuer(t *testing.T) {
	r := newRig(t, withToken(t))
	configure := func(issuer, client string) {
		cfg := *r.gateway.Config()
		cfg.Admin.OIDC = &config.OIDC{Issuer: issuer, ClientID: client, Roles: []config.GroupRole{{Group: "sre", Role: keys.RoleAdmin}}}
		if err := r.gateway.Reload(&cfg); err != nil {
			t.Fatal(err)
		}
	}
	cookie := r.Admin.sessions.begin(session{User: "alice", Group: "sre", Issuer: "https://a", Client: "x"}, secretToken)
	for _, c := range []struct {
		issuer, client string
		ok             bool
	}{{"https://a", "x", true}, {"https://b", "x", false}, {"https://a", "y", false}, {"https://a", "x", true}} {
		configure(c.issuer, c.client)
		if _, _, ok := r.Admin.sessionOf(cookie); ok != c.ok {
			t.Errorf("with %s of %s the session is valid: %t", c.client, c.issuer, ok)
		}
	}
}
