package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// hostile is the name of a project that would be an element, if a page took it for markup.
const hostile = `<u>hostile`

const usual = `
state: memory
listen: 127.0.0.1:0
providers:
  openai:
    base_url: MOCK
    models:
      gpt-large: {max_rpm: 1000, max_tpm: 100000, max_concurrent: 20}
      gpt-small: {max_rpm: 60, max_tpm: 20000}
projects:
  search: {requests_per_minute: 600, tokens_per_month: 1000000, weight: 3}
  acme: {dollars_per_month: 500, requests_per_day: 10000}
  acme/chat: {tokens_per_minute: 50000}
  small: {requests_per_minute: 2, max_wait: 0s}
  idle: {requests_per_minute: 7}
`

// rig is a gateway with its dashboard, in front of a mock provider.
type rig struct {
	url     string // the dashboard's
	clients string
	stop    func()
	gone    atomic.Bool // a proxy leaves it out
}

// start starts a gateway. In its configuration, MOCK is the provider, and ADMIN what the admin listener has beside its
// address.
func start(t testing.TB, yaml, admin string) *rig {
	t.Helper()
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(provider.Close)
	text := strings.ReplaceAll(yaml, "MOCK", provider.URL) + "admin: {" + admin + "}\n"
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan server.Running, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return config.Parse("test.yaml", []byte(text)) },
			Version: "test",
			Started: func(r server.Running) { running <- r },
		})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case r := <-running:
		t.Cleanup(stop)
		return &rig{url: "http://" + r.Admin.String(), clients: "http://" + r.Clients.String(), stop: stop}
	case err := <-ended:
		cancel()
		t.Fatal(err)
		return nil
	}
}

// shared is the gateway of all tests that need none of their own. It has seen calls of several projects.
var shared = sync.OnceValue(func() *rig {
	t := &outliving{}
	r := start(t, usual, "listen: 127.0.0.1:0")
	for i, project := range []string{"search", "search", "acme/chat", "small", "small", "small", "small", hostile, "acme/ads"} {
		r.call(t, project, []string{"gpt-large", "gpt-small"}[i%2])
	}
	for i := range 12 {
		r.api(t, "POST", "/v1/keys", map[string]any{"project": "search", "name": fmt.Sprintf("indexer %d", i)})
	}
	r.api(t, "POST", "/v1/tokens", map[string]any{"name": "wall", "role": "viewer"})
	return r
})

// outliving is a test that never ends: what is shared lives as long as the process.
type outliving struct{ testing.TB }

func (*outliving) Helper()                   {}
func (*outliving) Cleanup(func())            {}
func (*outliving) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (*outliving) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (*outliving) Error(args ...any)         { panic(fmt.Sprint(args...)) }

// call calls a model as a project, and returns the status and the request's id.
func (r *rig) call(t testing.TB, project, model string) int {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`, model)
	req, err := http.NewRequest("POST", r.clients+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Project-ID", project)
	return send[any](t, req, nil)
}

// api calls the admin API, and returns its answer.
func (r *rig) api(t testing.TB, method, path string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, r.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	var answer map[string]any
	if status := send(t, req, &answer); status >= 300 {
		t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

func (r *rig) get(t testing.TB, path string) map[string]any {
	t.Helper()
	return r.api(t, "GET", path, nil)
}

var client = &http.Client{Timeout: 2 * time.Minute}

func send[T any](t testing.TB, req *http.Request, answer *T) int {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer != nil && len(text) > 0 {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return resp.StatusCode
}
