package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A closed client of Redis leaves this goroutine asleep for up to five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
}

// rig is a gateway with its admin API, on real listeners.
type rig struct {
	*Admin
	gateway *gateway.Gateway
	clients string // the gateway's URL
	url     string // the API's URL
	client  *http.Client
	logged  *testkit.Log
	yaml    string // the configuration
}

const usual = `
state: memory
providers:
  openai:
    base_url: MOCK
    models:
      gpt-4o: {max_rpm: 100, max_tpm: 100000}
      "gpt-6*": {max_rpm: 10}
projects:
  search: {requests_per_minute: 60, tokens_per_month: 1000000, weight: 3}
  small: {requests_per_minute: 2, max_wait: 0s}
`

// usualWait is how long calls may wait if the configuration does not say.
const usualWait = Seconds(30 * time.Second)

// newRig starts a gateway with a configuration, in which MOCK stands for the address
// of a mock provider.
func newRig(t testing.TB, yaml string) *rig { return newRigWith(t, yaml, Options{}) }

func newRigWith(t testing.TB, yaml string, o Options) *rig {
	t.Helper()
	return newRigNamed(t, yaml, o, "")
}

// newRigNamed starts a gateway with a name among those that share its store.
func newRigNamed(t testing.TB, yaml string, o Options, name string) *rig {
	t.Helper()
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(provider.Close)
	cfg := gatewaytest.Config(t, yaml, provider.URL)
	r := &rig{logged: new(testkit.Log), yaml: yaml}
	o.Version = "test"
	if o.Log == nil {
		o.Log = slog.New(slog.NewJSONHandler(r.logged, nil))
	}
	g, err := gateway.New(cfg, gateway.Options{Log: o.Log, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	r.gateway = g
	if r.Admin, err = New(g, o); err != nil {
		t.Fatal(err)
	}
	clients, api := httptest.NewServer(g), httptest.NewServer(r.Admin)
	t.Cleanup(clients.Close)
	t.Cleanup(api.Close)
	r.clients, r.url = clients.URL, api.URL
	r.client = &http.Client{Transport: &holding{t, api.Client().Transport, &validator{document(t)}}}
	return r
}

// answer is what a client of the API gets.
type answer struct {
	status int
	header http.Header
	text   string
}

// as decodes the body of an answer.
func as[T any](t testing.TB, a answer) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), &value); err != nil {
		t.Fatalf("%s: %v", a.text, err)
	}
	return value
}

func (r *rig) get(t testing.TB, path string) answer {
	t.Helper()
	return r.send(t, http.MethodGet, path, "")
}

// send sends a request to the API. Headers are given as names and values; the Content-Type
// is JSON.
func (r *rig) send(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// want sends a request, expects a status, and returns the answer.
func (r *rig) want(t testing.TB, status int, method, path, body string) answer {
	t.Helper()
	a := r.send(t, method, path, body)
	if a.status != status {
		t.Fatalf("%s %s %s: %d %s: want %d", method, path, body, a.status, a.text, status)
	}
	return a
}

// call calls a model through the gateway, as a project.
func (r *rig) call(t testing.TB, project, model string) int {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`, model)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.clients+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Project-ID", project)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	r.settle(t)
	return resp.StatusCode
}

// settle waits until no request is in progress: the gateway records a request shortly after
// the client has got the answer.
func (r *rig) settle(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, "no request is in progress", func() bool { return r.gateway.Active() == 0 })
}

// holding is a transport that checks every answer against the OpenAPI document.
type holding struct {
	t testing.TB
	http.RoundTripper
	validator *validator
}

func (h *holding) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.RoundTripper.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil {
		return resp, err
	}
	if err := h.check(req, resp, text); err != nil {
		h.t.Errorf("%s %s: %d %s: %v", req.Method, req.URL.Path, resp.StatusCode, text, err)
	}
	return resp, nil
}

// check returns how an answer differs from the document.
func (h *holding) check(req *http.Request, resp *http.Response, text []byte) error {
	for _, header := range []string{"X-Content-Type-Options: nosniff", "Cache-Control: no-store"} {
		if name, value, _ := strings.Cut(header, ": "); resp.Header.Get(name) != value {
			return fmt.Errorf("there is no header %s", header)
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	op := h.operation(req)
	if op == nil {
		if resp.StatusCode < 400 || kind != "application/problem+json" {
			return fmt.Errorf("the document has no such operation")
		}
		return h.value(text, object{"$ref": "#/components/schemas/Problem"})
	}
	response, ok := op["responses"].(object)[fmt.Sprint(resp.StatusCode)].(object)
	if !ok {
		return fmt.Errorf("the document has no such status")
	}
	if ref, ok := response["$ref"].(string); ok {
		to, err := resolve(h.validator.doc, ref)
		if err != nil {
			return err
		}
		response = to.(object)
	}
	content, ok := response["content"].(object)
	if !ok {
		if len(text) > 0 {
			return fmt.Errorf("the document has no body")
		}
		return nil
	}
	as, ok := content[kind].(object)
	if !ok {
		return fmt.Errorf("the document has no content of type %q", kind)
	}
	if kind == "text/plain" || kind == "text/csv" {
		return nil
	}
	return h.value(text, as["schema"])
}

func (h *holding) value(text []byte, schema any) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return h.validator.validate(value, schema)
}

// operation returns the document's operation for a request, or nil.
func (h *holding) operation(req *http.Request) object {
	for path, item := range h.validator.doc["paths"].(object) {
		part := `[^/]+`
		if strings.HasSuffix(path, "{model}") || strings.HasSuffix(path, "{project}") {
			part = `.+`
		}
		pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), part)
		if !regexp.MustCompile("^" + pattern + "$").MatchString(req.URL.EscapedPath()) {
			continue
		}
		if op, ok := item.(object)[strings.ToLower(req.Method)].(object); ok {
			return op
		}
	}
	return nil
}
