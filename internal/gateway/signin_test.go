package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/limit"
)

const (
	browser  = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	formType = "application/x-www-form-urlencoded"
)

// signedInRig is a gateway with a call of a key in its books, and the cookie of a browser that has signed in
// with the key.
func signedInRig(t *testing.T) (r *rig, key keys.Key, secret, cookie string) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-provider")
	r = newRigBefore(t, family, newSeen())
	secret, key = r.newKey(t, "acme/search", "laptop")
	r.post(t, chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`, "Authorization", "Bearer "+secret)
	r.settled(t)
	response := sendForm(t, r.url+ownPaths, url.Values{"key": {" " + secret + "\n"}})
	set := response.Header.Get("Set-Cookie")
	for _, has := range []string{"Path=/ratelimit", "HttpOnly", "SameSite=Strict", "Max-Age=43200"} {
		if !strings.Contains(set, has) {
			t.Errorf("the cookie %q lacks %s", set, has)
		}
	}
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != ownPaths || strings.Contains(set, secret) {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	cookie, _, _ = strings.Cut(set, ";")
	return r, key, secret, cookie
}

// sendForm sends a form as a page of the gateway would, and returns the answer, a redirection too.
func sendForm(t *testing.T, to string, form url.Values) *http.Response {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.PostForm(to, form)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

// The holder of a key signs in, sees what is left and its own history, and signs out.
func TestSignIn(t *testing.T) {
	r, key, secret, cookie := signedInRig(t)
	a := r.do(t, http.MethodGet, ownPaths, "", "Accept", browser)
	if a.status != http.StatusOK || !strings.Contains(a.body, `name="key"`) || strings.Contains(a.body, "acme") {
		t.Fatalf("the form: %d %s", a.status, a.body)
	}
	a = r.do(t, http.MethodGet, ownPaths, "", "Accept", browser, "Cookie", cookie)
	for _, has := range []string{"acme/search", key.ID, "dollars a month", "Calls: 1. Tokens: 3 in, 4 out. Cost: $0.000046.", "Sign out", "<rect"} {
		if !strings.Contains(a.body, has) {
			t.Errorf("the page lacks %q: %s", has, a.body)
		}
	}
	if strings.Contains(a.body, secret) || strings.Contains(a.body, "987") || strings.Contains(a.body, "<script") || strings.Contains(a.body, "style=") {
		t.Error(a.body)
	}
	if a := r.do(t, http.MethodGet, pathMe, "", "Cookie", cookie); a.status != http.StatusOK || !json.Valid([]byte(a.body)) {
		t.Errorf("%d %s", a.status, a.body)
	}
	out := sendForm(t, r.url+pathSignOut, nil)
	if set := out.Header.Get("Set-Cookie"); out.StatusCode != http.StatusSeeOther || !strings.Contains(set, ticketCookie+"=; Path=/ratelimit; Max-Age=0") {
		t.Errorf("the sign-out: %d %q", out.StatusCode, set)
	}
}

// The cookie shows the page. It calls no model, and ends with its key.
func TestTicketIsNoKey(t *testing.T) {
	r, key, _, cookie := signedInRig(t)
	body := `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`
	_, ticket, _ := strings.Cut(cookie, "=")
	for _, header := range [][]string{{"Cookie", cookie}, {"Authorization", "Bearer " + ticket}} {
		if a := r.post(t, chat, body, header...); a.status != http.StatusUnauthorized {
			t.Errorf("with %s: %d %s", header[0], a.status, a.body)
		}
	}
	if err := r.Keys().Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if a := r.do(t, http.MethodGet, pathMe, "", "Cookie", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("after the key was revoked: %d %s", a.status, a.body)
	}
}

func TestSignInRefuses(t *testing.T) {
	r, _, secret, _ := signedInRig(t)
	off := newRigBefore(t, priced, newSeen())
	form := "key=" + secret
	for _, test := range []struct {
		name    string
		rig     *rig
		path    string
		body    string
		headers []string
		status  int
		says    string
	}{
		{"a wrong key", r, ownPaths, "key=rl-nonsense", nil, 401, "not a valid key"},
		{"no key", r, ownPaths, "", nil, 401, "not a valid key"},
		{"a broken form", r, ownPaths, "key=%zz", nil, 400, "the field key"},
		{"a huge form", r, ownPaths, "key=" + strings.Repeat("x", 5<<10), nil, 400, "4096 bytes"},
		{"JSON", r, ownPaths, `{"key":"x"}`, []string{"Content-Type", "application/json"}, 415, "a form"},
		{"another site", r, ownPaths, form, []string{"Sec-Fetch-Site", "cross-site"}, 403, "another site"},
		{"another origin", r, ownPaths, form, []string{"Origin", "https://evil.example"}, 403, "another site"},
		{"a sandboxed page", r, ownPaths, form, []string{"Origin", "null"}, 403, "another site"},
		{"a sign-out of another site", r, pathSignOut, "", []string{"Sec-Fetch-Site", "same-site"}, 403, "another site"},
		{"keys off", off, ownPaths, form, nil, 405, "switched off"},
	} {
		headers := test.headers
		if len(headers) == 0 || headers[0] != "Content-Type" {
			headers = append([]string{"Content-Type", formType}, headers...)
		}
		a := test.rig.post(t, test.path, test.body, headers...)
		if a.status != test.status || !strings.Contains(a.body, test.says) || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v %s", test.name, a.status, a.header, a.body)
		}
	}
}

// A client sees its own usage, whichever the key's project, and nothing of other keys.
func TestMyUsage(t *testing.T) {
	r, _, secret, _ := signedInRig(t)
	other, _ := r.newKey(t, "acme/search", "")
	for by, rows := range map[string]int{"": 1, "?by=hour": 1, "?by=day,model&since=2d": 1, "?by=day&until=2020-02-01&since=2020-01-01": 0} {
		a := r.do(t, http.MethodGet, pathMyUsage+by, "", "X-Api-Key", secret)
		var got UsageReport
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || len(got.Rows) != rows {
			t.Errorf("%q: %d %s", by, a.status, a.body)
		}
		if rows == 1 && (got.Total.Requests != 1 || got.Total.Input != 3 || got.Total.Output != 4) {
			t.Errorf("%q: %s", by, a.body)
		}
	}
	var none UsageReport
	if a := r.do(t, http.MethodGet, pathMyUsage, "", "X-Api-Key", other); json.Unmarshal([]byte(a.body), &none) != nil || none.Total != (UsageSum{}) {
		t.Errorf("another key of the project: %s", a.body)
	}
	for query, says := range map[string]string{
		"?by=key": "hour, day and model", "?by=project": "hour, day and model", "?project=other": "the parameters are", "?by=day&by=day": "once",
		"?since=yesterday-ish": "is no time", "?by=%zz": "URL-encoded",
	} {
		if a := r.do(t, http.MethodGet, pathMyUsage+query, "", "X-Api-Key", secret); a.status != http.StatusBadRequest || !strings.Contains(a.body, says) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

// Reading the books is free, so a client may not have the store do nothing else.
func TestMyUsageTooOften(t *testing.T) {
	r, _, secret, _ := signedInRig(t)
	r.reads = limit.NewLimiter(readerOf, limit.New(readsPerMinute, 24*time.Hour)) // nothing comes back meanwhile
	other, _ := r.newKey(t, "acme/search", "")
	var a answer
	for range readsPerMinute + 1 {
		a = r.do(t, http.MethodGet, pathMyUsage, "", "X-Api-Key", secret)
	}
	if a.status != http.StatusTooManyRequests || !strings.Contains(a.body, "60 times a minute") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.do(t, http.MethodGet, ownPaths, "", "X-Api-Key", secret, "Accept", "text/html"); a.status != http.StatusOK || strings.Contains(a.body, "The last 24 hours") {
		t.Errorf("the page, which can do without its history: %d %s", a.status, a.body)
	}
	if a := r.do(t, http.MethodGet, pathMyUsage, "", "X-Api-Key", other); a.status != http.StatusOK {
		t.Errorf("another key: %d %s", a.status, a.body)
	}
}
