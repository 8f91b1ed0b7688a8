package admin

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Wrong bearer tokens are logged, and after ten of them an address must wait, whatever it sends then. Other addresses
// are served with the right token, and requests without any token count as no guess.
func TestGuessesAreSlowedDown(t *testing.T) {
	for _, path := range []string{"/v1/state", "/metrics", "/session", "/readyz"} {
		r := newRig(t, withToken(t))
		from := func(address, token string) *httptest.ResponseRecorder {
			req := httptest.NewRequest("GET", path, nil)
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			req.RemoteAddr = address
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			return w
		}
		for range 30 {
			if w := from("192.0.2.1:99", secretToken); w.Code != 200 {
				t.Fatalf("%s with the token: %d %s", path, w.Code, w.Body)
			}
			if w := from("192.0.2.1:99", ""); w.Code == 429 {
				t.Fatalf("%s without a token: %d %s", path, w.Code, w.Body)
			}
		}
		for i := range 10 {
			if w := from("192.0.2.1:99", "guess"); w.Code == 429 {
				t.Fatalf("%s: guess %d: %d %s", path, i, w.Code, w.Body)
			}
		}
		for _, token := range []string{"guess", secretToken} {
			if w := from("192.0.2.1:77", token); w.Code != 429 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "signed_in") {
				t.Errorf("%s with %q after ten guesses: %d %v %s", path, token, w.Code, w.Header(), w.Body)
			}
		}
		if w := from("192.0.2.2:99", secretToken); w.Code != 200 {
			t.Errorf("%s with the token from another address: %d %s", path, w.Code, w.Body)
		}
		if n := strings.Count(r.logged.String(), "a request has a wrong token"); n != 10 {
			t.Errorf("%s: %d guesses are in the log: want 10:\n%s", path, n, r.logged)
		}
	}
}
