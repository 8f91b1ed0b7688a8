package admin

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secretToken = "the-token-that-nobody-may-see"

// withToken is a configuration with a token for the API.
func withToken(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(secretToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return usual + "admin: {token: {file: " + path + "}}\n"
}

func TestToken(t *testing.T) {
	r := newRig(t, withToken(t))
	for _, c := range []struct {
		name, path, auth string
		want             int
	}{
		{"right", "/v1/state", "Bearer " + secretToken, 200},
		{"another case of the scheme", "/v1/state", "bearer " + secretToken, 200},
		{"metrics", "/metrics", "Bearer " + secretToken, 200},
		{"none", "/v1/state", "", 401},
		{"none for metrics", "/metrics", "", 401},
		{"none for the document", "/openapi.json", "", 401},
		{"none for a path that is not there", "/v1/secrets", "", 401},
		{"wrong", "/v1/state", "Bearer wrong", 401},
		{"half", "/v1/state", "Bearer " + secretToken[:9], 401},
		{"longer", "/v1/state", "Bearer " + secretToken + "x", 401},
		{"empty", "/v1/state", "Bearer ", 401},
		{"another scheme", "/v1/state", "Basic " + secretToken, 401},
		{"no scheme", "/v1/state", secretToken, 401},
		{"probes need none", "/healthz", "", 200},
		{"nor do these", "/readyz", "", 200},
	} {
		a := r.send(t, http.MethodGet, c.path, "", "Authorization", c.auth)
		if a.status != c.want {
			t.Errorf("%s: %d %s: want %d", c.name, a.status, a.text, c.want)
		}
		if challenged := a.header.Get("WWW-Authenticate") != ""; challenged != (c.want == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, a.header.Get("WWW-Authenticate"))
		}
	}
	r.want(t, 401, http.MethodPost, "/v1/keys", `{"project": "search"}`)
	if len(r.gateway.Keys().List()) != 0 {
		t.Error("a key was created without the token")
	}
}

// With a token, clients on other machines and with other names of the host are served.
func TestTokenFromAfar(t *testing.T) {
	r := newRig(t, withToken(t))
	req := httptest.NewRequest(http.MethodGet, "http://gateway.example/v1/state", nil)
	req.RemoteAddr = "192.0.2.7:1234"
	req.Header.Set("Authorization", "Bearer "+secretToken)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestLoopbackOnly(t *testing.T) {
	r := newRig(t, usual)
	for _, c := range []struct {
		name, method, host, remote string
		headers                    []string
		want                       int
	}{
		{"an address", "GET", "127.0.0.1:8081", "127.0.0.1:999", nil, 200},
		{"another loopback address", "GET", "127.9.9.9", "127.9.9.9:999", nil, 200},
		{"IPv6", "GET", "[::1]:8081", "[::1]:999", nil, 200},
		{"IPv6 without a port", "GET", "[::1]", "[::1]:999", nil, 200},
		{"IPv4 in IPv6", "GET", "127.0.0.1", "[::ffff:127.0.0.1]:999", nil, 200},
		{"a name", "GET", "localhost:8081", "127.0.0.1:999", nil, 200},
		{"the name in capitals", "GET", "LOCALHOST", "127.0.0.1:999", nil, 200},
		{"a name that leads here", "GET", "rebind.example:8081", "127.0.0.1:999", nil, 403},
		{"one that looks like it", "GET", "localhost.example", "127.0.0.1:999", nil, 403},
		{"one that begins like it", "GET", "127.0.0.1.example", "127.0.0.1:999", nil, 403},
		{"no host", "GET", "", "127.0.0.1:999", nil, 403},
		{"another address", "GET", "10.0.0.1:8081", "127.0.0.1:999", nil, 403},
		{"all addresses", "GET", "0.0.0.0:8081", "127.0.0.1:999", nil, 403},
		{"another machine", "GET", "localhost", "192.0.2.7:999", nil, 403},
		{"no address at all", "GET", "localhost", "", nil, 403},
		{"a page of its own", "POST", "localhost", "127.0.0.1:999", []string{"Sec-Fetch-Site", "same-origin"}, 409},
		{"no browser", "POST", "localhost", "127.0.0.1:999", nil, 409},
		{"a page of another site", "POST", "localhost", "127.0.0.1:999", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"one that reads", "GET", "localhost", "127.0.0.1:999", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page of another port", "GET", "localhost", "127.0.0.1:999", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"an address that somebody has typed", "GET", "localhost", "127.0.0.1:999", []string{"Sec-Fetch-Site", "none"}, 200},
		{"an old browser", "POST", "localhost:8081", "127.0.0.1:999", []string{"Origin", "https://evil.example"}, 403},
		{"probes from afar", "PROBE", "10.0.0.1:8081", "10.0.0.2:999", nil, 200},
	} {
		path := map[string]string{"GET": "/v1/config", "POST": "/v1/reload", "PROBE": "/healthz"}[c.method]
		req := httptest.NewRequest(strings.Replace(c.method, "PROBE", "GET", 1), path, nil)
		req.Host, req.RemoteAddr = c.host, c.remote
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%s: %d %s: want %d", c.name, w.Code, w.Body, c.want)
		}
	}
}

// A caller without the token does not get the reason why the gateway is not ready.
func TestReadinessHidesItsReason(t *testing.T) {
	r := newRig(t, withToken(t))
	r.gateway.Drain()
	if a := r.want(t, 503, "GET", "/readyz", ""); strings.Contains(a.text, "stop") {
		t.Errorf("a caller without the token gets %s", a.text)
	}
	a := r.send(t, "GET", "/readyz", "", "Authorization", "Bearer "+secretToken)
	if a.status != 503 || !strings.Contains(a.text, "stop") {
		t.Errorf("%d %s", a.status, a.text)
	}
	r.want(t, 200, "GET", "/healthz", "")
}
