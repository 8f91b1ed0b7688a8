package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const withKeys = `
keys: required
providers:
  openai: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}
  anthropic: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}
  gemini: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}
  azure: {base_url: MOCK, kind: azure, key: {env: TEST_PROVIDER_KEY}}
  local: {base_url: MOCK}
`

const (
	hello    = `{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`
	generate = "/gemini/v1beta/models/gemini-2.5-pro:generateContent"
)

// The gateway finds a virtual key in every header that an SDK uses, and sends the provider's
// key in the header that the provider expects. The virtual key is not forwarded.
func TestKeys(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	upstream := newSeen()
	r := newRigBefore(t, withKeys, upstream)
	secret, key := r.newKey(t, "search", "")
	for _, c := range []struct{ path, field, value, wantField, want string }{
		{chat, "Authorization", "Bearer " + secret, "Authorization", "Bearer sk-of-the-provider"},
		{chat, "authorization", "bearer  " + secret, "Authorization", "Bearer sk-of-the-provider"},
		{chat, "X-Api-Key", secret, "Authorization", "Bearer sk-of-the-provider"},
		{messages, "X-Api-Key", secret, "X-Api-Key", "sk-of-the-provider"},
		{messages, "Authorization", "Bearer " + secret, "X-Api-Key", "sk-of-the-provider"},
		{"/anthropic/v1/models", "X-Api-Key", secret, "X-Api-Key", "sk-of-the-provider"},
		{"/anthropic/v1/chat/completions", "Authorization", "Bearer " + secret, "Authorization", "Bearer sk-of-the-provider"},
		{generate, "X-Goog-Api-Key", secret, "X-Goog-Api-Key", "sk-of-the-provider"},
		{generate + "?alt=sse&key=" + secret, "X-Other", "1", "X-Goog-Api-Key", "sk-of-the-provider"},
		{generate + "?%6bey=" + secret + "&alt=sse", "Api-Key", secret, "X-Goog-Api-Key", "sk-of-the-provider"},
		{"/gemini/v1beta/openai/chat/completions", "Authorization", "Bearer " + secret, "Authorization", "Bearer sk-of-the-provider"},
		{"/azure/openai/deployments/gpt/chat/completions", "Api-Key", secret, "Api-Key", "sk-of-the-provider"},
		{"/local/api/chat", "Authorization", "Bearer " + secret, "Authorization", ""},
	} {
		body := hello
		if strings.HasPrefix(c.path, generate) { // the path names the model
			body = `{"contents":[]}`
		}
		a := r.post(t, c.path, body, c.field, c.value, "Cookie", "of=the-client", "X-Project-ID", "another")
		if a.status != http.StatusOK {
			t.Errorf("%s with %s: %d %s", c.path, c.field, a.status, a.body)
			continue
		}
		got := <-upstream.requests
		<-upstream.bodies
		if got.Header.Get(c.wantField) != c.want {
			t.Errorf("%s with %s: %s is %q", c.path, c.field, c.wantField, got.Header.Get(c.wantField))
		}
		given := 0
		for name, values := range got.Header {
			for _, value := range append(values, got.URL.RawQuery) {
				if strings.Contains(value, secret) || strings.Contains(value, key.ID) {
					t.Errorf("%s with %s: the virtual key was sent in %s", c.path, c.field, name)
				}
				if strings.Contains(value, "sk-of") {
					given++
				}
			}
		}
		if want := min(len(c.want), 1); given != want {
			t.Errorf("%s with %s: the provider's key was sent %d times", c.path, c.field, given)
		}
		for _, name := range []string{"Cookie", "X-Project-Id"} {
			if got.Header[name] != nil {
				t.Errorf("%s was sent", name)
			}
		}
		if strings.Contains(c.path, "alt=sse") && got.URL.RawQuery != "alt=sse" {
			t.Errorf("the query is %q", got.URL.RawQuery)
		}
		if a.header["Set-Cookie"] != nil {
			t.Error("a cookie of the gateway's account reaches the client")
		}
		if last := r.last(t); last.Project != "search" || last.Key != key.ID {
			t.Errorf("it is of %q, with key %q", last.Project, last.Key)
		}
	}
}

// Without a valid key, nothing is sent or charged, and the answer has the form of the
// provider's errors.
func TestWithoutKey(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	upstream := newSeen()
	r := newRigBefore(t, withKeys, upstream)
	secret, key := r.newKey(t, "search", "")
	if err := r.Keys().Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{"", "sk-of-the-provider", secret, testkit.Forged(secret), "rl-"} {
		for path, want := range map[string]string{
			chat:                `"code":"invalid_api_key"`,
			messages:            `"type":"authentication_error"`,
			generate:            `"status":"UNAUTHENTICATED"`,
			"/openai/v1/models": `"code":"invalid_api_key"`,
		} {
			a := r.post(t, path, hello, "Authorization", "Bearer "+sent)
			if a.status != http.StatusUnauthorized || !strings.Contains(a.body, want) || a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s with %q: %d %v %s", path, sent, a.status, a.header, a.body)
			}
			if sent != "" && strings.Contains(a.body, sent) {
				t.Errorf("the answer shows what was sent: %s", a.body)
			}
			testkit.Equal(t, "the outcome", Refused, r.last(t).Outcome)
		}
	}
	if len(upstream.requests) > 0 {
		t.Error("a request was sent")
	}
}

// With keys off, the client's own key of the provider is forwarded, and a header names its
// project. A virtual key is not forwarded.
func TestKeysOff(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	secret, _ := r.newKey(t, "search", "")
	for _, query := range []string{"?key=" + secret, "?%6bey=" + secret, "?alt=sse&k%65y=" + secret} {
		if a := r.post(t, generate+query, hello); a.status != 401 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	for _, c := range []struct {
		headers []string
		status  int
		project string
	}{
		{[]string{"Authorization", "Bearer sk-mine"}, 200, "default"},
		{[]string{"X-Api-Key", "sk-mine", "X-Project-ID", "search"}, 200, "search"},
		{[]string{"X-Project-ID", "no good"}, 400, ""},
		{[]string{"X-Project-ID", ""}, 400, ""},
		{[]string{"Authorization", "Bearer " + secret}, 401, "default"},
	} {
		a := r.post(t, chat, hello, c.headers...)
		if a.status != c.status || r.last(t).Project != c.project {
			t.Errorf("%q: %d %s of %q", c.headers, a.status, a.body, r.last(t).Project)
		}
		if c.status == 200 {
			if got := <-upstream.requests; got.Header.Get(c.headers[0]) != c.headers[1] || got.Header["X-Project-Id"] != nil {
				t.Errorf("%q: sent with %v", c.headers, got.Header)
			}
		}
	}
}

// The provider does not get hop-by-hop headers, or headers in which proxies describe the
// client. The client does not get the provider's hop-by-hop headers.
func TestHeaders(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	a := r.post(t, chat, hello,
		"Connection", "X-Hop, keep-alive", "X-Hop", "1", "Te", "trailers", "Proxy-Authorization", "Basic x", "X-Forwarded-For", "10.0.0.1",
		"Forwarded", "for=10.0.0.1", "Accept-Encoding", "gzip", "Openai-Beta", "responses=v1", "User-Agent", "sdk/1")
	got := <-upstream.requests
	for _, name := range []string{"Connection", "X-Hop", "Te", "Proxy-Authorization", "X-Forwarded-For", "Forwarded", "Accept-Encoding"} {
		if got.Header[name] != nil {
			t.Errorf("%s was sent", name)
		}
	}
	if got.Header.Get("Openai-Beta") != "responses=v1" || got.UserAgent() != "sdk/1" {
		t.Errorf("sent with %v", got.Header)
	}
	if a.header["X-Internal"] != nil {
		t.Error("a header that is meant for the gateway reaches the client")
	}
	if a.header.Get("Set-Cookie") == "" {
		t.Error("a cookie of the client's own account does not reach it")
	}
}

// Hop-by-hop headers pass in neither direction, whatever carries the messages. Package wire drops
// them by itself; net/http, which carries HTTP/2 and requests by way of a proxy, sends most of them.
func TestHopByHopHeaders(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-provider-secret")
	for _, more := range []string{"", ", http2: true", ", key: {env: TEST_PROVIDER_KEY}"} {
		sent := make(chan http.Header, 1)
		r := newRigBefore(t, "providers: {openai: {base_url: MOCK"+more+"}}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent <- r.Header
			for _, name := range hopFields {
				if name != "Transfer-Encoding" { // the server's own
					w.Header().Set(name, "x-named")
				}
			}
			w.Header().Set("X-Named", "1")
		}))
		request := httptest.NewRequest(http.MethodGet, "http://localhost/openai/v1/models", nil)
		for _, name := range hopFields {
			request.Header.Set(name, "x-named")
		}
		request.Header.Set("X-Named", "1")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, request)
		if w.Code != http.StatusOK {
			t.Fatalf("%q: %d %s", more, w.Code, w.Body)
		}
		h := <-sent
		for _, name := range append(hopFields, "X-Named") {
			if h[name] != nil {
				t.Errorf("%q: the provider gets %s: %q", more, name, h[name])
			}
			if got := w.Header()[name]; got != nil {
				t.Errorf("%q: the client gets %s: %q", more, name, got)
			}
		}
	}
}

// A project that may only call some models can call no others, and can make no request of
// which the gateway does not know the model.
func TestAllowedModels(t *testing.T) {
	r := newRig(t, oneOfEach+`
projects:
  small: {models: ["gpt-4o-mini*", best]}
`, mockprovider.Config{})
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", chat, `{"model":"gpt-4o-mini-2024","messages":[]}`, 200},
		{"POST", chat, `{"model":"best","messages":[]}`, 200},
		{"POST", chat, `{"model":"gpt-4o","messages":[]}`, 403},
		{"POST", chat, `{"messages":[]}`, 403},
		{"POST", chat, `{"model":"gpt-4o-mini","model":"gpt-4o","messages":[]}`, 400},
		{"POST", generate, `{"contents":[]}`, 403},
		{"POST", "/openai/v1/whatever", `{"model":"gpt-4o-mini"}`, 403},
		{"POST", "/anthropic/v1/messages/batches", `{"requests":[{"params":{"model":"claude-opus-4-5","messages":[]}}]}`, 403},
		{"POST", "/openai/v1/batches", `{}`, 400},
		{"GET", "/openai/v1/models", ``, 200},
	} {
		a := r.do(t, c.method, c.path, c.body, "X-Project-ID", "small")
		if a.status != c.status {
			t.Errorf("%s %s: %d %s", c.path, c.body, a.status, a.body)
		}
		if c.status == 403 && !strings.Contains(a.body, "gpt-4o-mini*, best") {
			t.Errorf("%s: the answer does not say what is allowed: %s", c.path, a.body)
		}
	}
}
