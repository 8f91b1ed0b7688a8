package dashboard_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const token = "the-token-of-the-test"

func TestSignIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, usual, "listen: 127.0.0.1:0, token: {file: "+path+"}")
	b := open(t, r, "/#/keys", "401 (Unauthorized)")
	b.shows("h1", "Sign in")
	b.fill("token", "wrong")
	b.press("Sign in")
	b.shows(".fault", "not a token")
	b.fill("token", token)
	b.press("Sign in")
	b.shows("h1", "Keys")
	b.shows("#connection", "live")
	if text := eval[string](b, `document.cookie + JSON.stringify(localStorage)`); strings.Contains(text, "session") || strings.Contains(text, token) {
		t.Errorf("scripts can read the session: %s", text)
	}
	b.visit("/#/audit")
	b.shows("h1", "Audit log")
	b.press("Sign out")
	b.shows("h1", "Sign in")
	if text := eval[string](b, `document.body.innerText`); strings.Contains(text, "gpt-large") {
		t.Error("what was seen is still there")
	}
}

// A viewer is offered nothing that changes something, and one who is bound to a project sees its page and no other.
func TestSignInWithARole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, usual, "listen: 127.0.0.1:0, token: {file: "+path+"}")
	create := func(body string) string {
		req, err := http.NewRequest("POST", r.url+"/v1/tokens", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		var made struct{ Secret string }
		if status := send(t, req, &made); status != 201 {
			t.Fatal(status)
		}
		return made.Secret
	}
	enter := func(secret string) *tab {
		b := open(t, r, "/#/keys", "401 (Unauthorized)")
		b.shows("h1", "Sign in")
		b.fill("token", secret)
		b.press("Sign in")
		b.shows("h1", "Keys")
		return b
	}
	visible := `[...document.querySelectorAll('main button')].filter((each) => each.offsetParent !== null).map((each) => each.textContent).join()`
	b := enter(create(`{"name": "wall", "role": "viewer"}`))
	b.shows("#connection", "live")
	if text := eval[string](b, visible); text != "" {
		t.Errorf("a viewer is offered %s", text)
	}
	if text := eval[string](b, `document.querySelector('main').innerText`); strings.Contains(text, "token") || strings.Contains(text, "Token") {
		t.Errorf("a viewer sees %s", text)
	}
	b.visit("/#/usage")
	b.shows("main", "Nothing was used")
	b.visit("/#/project/acme")
	b.shows("h1", "acme")
	if text := eval[string](b, visible); strings.Contains(text, "limits") || strings.Contains(text, "Pause") || strings.Contains(text, "Create") {
		t.Errorf("a viewer is offered %s", text)
	}
	b.press("Sign out")
	b.shows("h1", "Sign in")

	b = enter(create(`{"name": "team", "role": "operator", "project": "acme"}`))
	if text := eval[string](b, visible); !strings.Contains(text, "Create a key") {
		t.Errorf("an operator is offered %s", text)
	}
	b.visit("/#/")
	b.shows("h1", "acme")
	if text := eval[string](b, `[...document.querySelectorAll('nav a')].filter((each) => !each.hidden).map((each) => each.textContent).join()`); text != "Overview,Usage,Decisions,Explain,Keys" {
		t.Errorf("the pages are %s", text)
	}
}

// A page of another site cannot sign in or out, or change anything.
func TestCrossSite(t *testing.T) {
	r := shared()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/session", `{"token": "x"}`}, {"PATCH", "/v1/projects/idle", `{"paused": true}`}, {"POST", "/v1/reset", `{"project": "idle"}`}, {"POST", "/v1/keys", `{"project": "idle"}`},
	} {
		req, err := http.NewRequest(c.method, r.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", "https://evil.example")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if status := send[any](t, req, nil); status != 403 {
			t.Errorf("%s %s: %d", c.method, c.path, status)
		}
	}
}
