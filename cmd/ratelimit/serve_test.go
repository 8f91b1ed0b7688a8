package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// serving is a gateway that a test has started by its command.
type serving struct {
	base, admin string
	stderr      *testkit.Log
	end         context.CancelFunc
	code        chan int
}

// serveWith starts a gateway with arguments, and with its admin API, which commands of the test then ask.
func serveWith(t *testing.T, args ...string) *serving {
	t.Helper()
	s := startGateway(t, append([]string{"--admin", "127.0.0.1:0"}, args...)...)
	s.admin = s.stderr.Await(t, `admin  (http\S+)`)
	t.Setenv(adminVariable, s.admin)
	return s
}

// startGateway starts a gateway with arguments.
func startGateway(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	s := &serving{stderr: new(testkit.Log), end: end, code: make(chan int, 1)}
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	go func() {
		s.code <- Main(ctx, args, strings.NewReader(""), io.Discard, s.stderr)
		close(s.code)
	}()
	t.Cleanup(func() {
		end()
		<-s.code
	})
	s.base = s.stderr.Await(t, `serves (http\S+)`)
	s.stderr.Await(t, `openai +http`)
	return s
}

// The program prints which quotas are guessed.
func TestServeSaysWhichQuotasAreGuessed(t *testing.T) {
	s := serveWith(t, "--state", "memory", "--config", file(t, "gateway.yaml", "providers: {openai: {models: {gpt-4o: {max_rpm: 9}}}}"))
	s.stderr.Await(t, `assumed limits, until .* real ones \(Gemini reports`)
	s.stderr.Await(t, `openai +500 requests/min, 30,000 tokens/min +gpt-4-turbo, o1\n`)
	if got := run(t, "check", file(t, "gateway.yaml", "keys: off")); got.code != 0 || !strings.Contains(got.stdout, "assumed: 500 requests/min, 30,000 tokens/min") {
		t.Errorf("check: %+v", got)
	}
}

// The program prints nothing about a provider that is not served. Once, it always printed
// Gemini's quotas.
func TestServeSaysNothingOfProvidersThatItDoesNotServe(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-of-the-provider")
	s := serveWith(t, "--state", "memory", "--config", file(t, "gateway.yaml", "keys: required\nproviders: {openai: {key: {env: TEST_KEY}}}"))
	s.stderr.Await(t, `assumed limits, until the provider reports the real ones:\n`)
}

// withMock returns a configuration whose provider is a mock.
func withMock(t *testing.T, more string) string {
	t.Helper()
	mock := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(mock.Close)
	return file(t, "gateway.yaml", "providers: {openai: {base_url: "+mock.URL+", key: {env: TEST_KEY}, models: {m: {max_rpm: 100, max_tpm: 5000}}}}\n"+more)
}

// ask makes a call of a model, and returns its status.
func (s *serving) ask(t *testing.T, project, key string) int {
	t.Helper()
	body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`
	req, err := http.NewRequest(http.MethodPost, s.base+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if project != "" {
		req.Header.Set("X-Project-ID", project)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// The README's first command: without a configuration, the program prints what it serves.
func TestServe(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.db")
	s := serveWith(t, "--state", state)
	for _, want := range []string{
		"  state  " + state, "  keys   off",
		"anthropic  " + s.base + "/anthropic  ANTHROPIC_BASE_URL\n",
		"gemini     " + s.base + "/gemini     GOOGLE_GEMINI_BASE_URL\n",
		"local      " + s.base + "/local\n",
		"openai     " + s.base + "/openai/v1  OPENAI_BASE_URL\n",
		`put openai_base_url = "` + s.base + `/openai/v1" into ~/.codex/config.toml`,
	} {
		s.stderr.Await(t, regexp.QuoteMeta(want))
	}
	s.end()
	if code := <-s.code; code != exitFine {
		t.Errorf("code %d:\n%s", code, s.stderr)
	}
}

func TestServeRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "nowhere"}, exitUsage, "--listen"},
		{[]string{"--admin", "nowhere"}, exitUsage, "--admin"},
		{[]string{"--state", "postgres://x"}, exitUsage, "--state"},
		{[]string{"--config", "none.yaml"}, exitFailed, "none.yaml"},
		{[]string{"--config", file(t, "gateway.yaml", "listen: nowhere")}, exitFailed, "gateway.yaml:1:9"},
		{[]string{"--admin", "0.0.0.0:0"}, exitUsage, "token"},
	} {
		got := run(t, append([]string{"serve"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, "Usage") {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {search: {requests_per_minute: 60, weight: 3}}"))
	if status := s.ask(t, "search", "any"); status != http.StatusOK {
		t.Fatalf("a call: %d", status)
	}
	got := run(t, "status")
	for _, want := range []string{"gateway ", "model  max_rpm", "m      1 / 100", "search", "requests_per_minute 1 / 60", "weight 3"} {
		if got.code != exitFine || !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in %+v", want, got)
		}
	}
	var state admin.State
	if got := run(t, "status", "--json"); json.Unmarshal([]byte(got.stdout), &state) != nil || state.Keys != "off" {
		t.Errorf("%+v", got)
	}
	if got := run(t, "status", "--admin", strings.TrimPrefix(s.admin, "http://")); got.code != exitFine {
		t.Errorf("an address without a scheme: %+v", got)
	}
}

// The program goes on until it is stopped, which is no error.
func TestStatusWatch(t *testing.T) {
	serveWith(t, "--state", "memory")
	ctx, stop := context.WithCancel(t.Context())
	stdout, code := new(testkit.Log), make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"status", "--watch"}, strings.NewReader(""), stdout, io.Discard)
	}()
	stdout.Await(t, `(?s)gateway .*gateway `)
	stop()
	if got := <-code; got != exitFine {
		t.Errorf("code %d", got)
	}
}

func TestKeys(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "keys: required\n"))
	created := run(t, "key", "create", "search", "--name", "in staging", "--expires", "30d")
	secret := strings.TrimSuffix(created.stdout, "\n")
	if created.code != exitFine || len(strings.Fields(created.stdout)) != 1 || strings.Contains(created.stderr, secret) {
		t.Fatalf("%+v", created)
	}
	if status := s.ask(t, "", secret); status != http.StatusOK {
		t.Errorf("a call with the key: %d", status)
	}
	if status := s.ask(t, "", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a call with a wrong key: %d", status)
	}
	var list []keys.Key
	if got := run(t, "key", "list", "--json"); json.Unmarshal([]byte(got.stdout), &list) != nil || len(list) != 1 {
		t.Fatalf("%+v", got)
	}
	id := list[0].ID
	for _, want := range []string{id, "in staging", "search"} {
		if got := run(t, "key", "list"); !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, secret) {
			t.Errorf("there is no %q in %+v", want, got)
		}
	}
	if got := run(t, "__complete", "key", "rotate", ""); !strings.Contains(got.stdout, id+"\tsearch") {
		t.Errorf("completion: %+v", got)
	}
	rotated := run(t, "key", "rotate", id)
	next := strings.TrimSuffix(rotated.stdout, "\n")
	if rotated.code != exitFine || next == secret || next == "" {
		t.Fatalf("%+v", rotated)
	}
	if old, new := s.ask(t, "", secret), s.ask(t, "", next); old != http.StatusUnauthorized || new != http.StatusOK {
		t.Errorf("calls with the old key and the new: %d, %d", old, new)
	}
	s.revokeAll(t)
	if status := s.ask(t, "", next); status != http.StatusUnauthorized {
		t.Errorf("a call with a revoked key: %d", status)
	}
	if got := run(t, "key", "revoke", "nonsense"); got.code != exitFailed || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	if strings.Contains(s.stderr.String(), secret) || strings.Contains(s.stderr.String(), next) {
		t.Error("a key is in the log")
	}
}

func (s *serving) revokeAll(t *testing.T) {
	t.Helper()
	var list []keys.Key
	if err := json.Unmarshal([]byte(run(t, "key", "list", "--json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		if got := run(t, "key", "revoke", k.ID); got.code != exitFine || !strings.Contains(got.stdout, k.ID) {
			t.Errorf("%+v", got)
		}
	}
}

func TestToken(t *testing.T) {
	t.Setenv("TEST_TOKEN", "very-secret")
	serveWith(t, "--state", "memory", "--config", file(t, "gateway.yaml", "admin: {token: {env: TEST_TOKEN}}"))
	got := run(t, "status")
	if got.code != exitFailed || !strings.Contains(got.stderr, "put the token into the variable RATELIMIT_ADMIN_TOKEN") {
		t.Errorf("without a token: %+v", got)
	}
	if got := run(t, "status", "--token-env", "TEST_TOKEN"); got.code != exitFine {
		t.Errorf("with the token: %+v", got)
	}
	t.Setenv(tokenVariable, "very-secret")
	if got := run(t, "status"); got.code != exitFine {
		t.Errorf("with the token: %+v", got)
	}
}

// After it has made a key, the program warns of two surprises: that the gateway takes no keys,
// and that the project has only the default limit.
func TestKeyCreateTells(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	const (
		refused = "this gateway refuses all such keys until its configuration says keys: required\n"
		key     = `key \w+ of project \w+, which does not expire; it is not shown again:\n`
	)
	for _, c := range []struct{ config, project, want string }{
		{"keys: required\nprojects: {search: {requests_per_minute: 60}}", "search", ""},
		{"keys: required\nprojects: {search: {}}", "search", ""}, // the configuration names the project
		{"keys: required\nprojects: {search: {}}", "serch", "project serch has no limit of its own, but the default: unlimited\n"},
		{"keys: required\ndefaults: {requests_per_minute: 60}", "serch", "project serch has no limit of its own, but the default: 60 requests/min\n"},
		{"projects: {search: {}}", "search", refused},
	} {
		s := serveWith(t, "--state", "memory", "--config", withMock(t, c.config))
		if got := run(t, "key", "create", c.project); got.code != exitFine || !regexp.MustCompile("^"+c.want+key+"$").MatchString(got.stderr) {
			t.Errorf("%s: %+v", c.config, got)
		}
		s.end()
	}
}

// At the start, the program prints whose key each provider gets.
func TestServeTellsOfKeys(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	serveWith(t, "--state", "memory", "--config", withMock(t, "")).stderr.Await(t,
		`keys   off: a client's own key passes through, but to openai goes yours; its project is in X-Project-ID\n`)
	serveWith(t, "--state", "memory").stderr.Await(t, `keys   off: a client's own key passes through; its project is in X-Project-ID\n`)
}

// The error for the address of clients in place of the admin API says which one is needed.
func TestNotTheAdminAddress(t *testing.T) {
	s := serveWith(t, "--state", "memory")
	if got := run(t, "status", "--admin", s.base); got.code != exitFailed || !strings.Contains(got.stderr, s.base+" must be the address of the admin API") {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"key revoke nonsense", "status --admin https" + strings.TrimPrefix(s.admin, "http")} {
		if got := run(t, strings.Fields(args)...); got.code != exitFailed || strings.Contains(got.stderr, "must be the address") {
			t.Errorf("%s: what is wrong is said already: %+v", args, got)
		}
	}
}

func TestNoGateway(t *testing.T) {
	t.Setenv(adminVariable, "http://127.0.0.1:1")
	const want = "ratelimit: no gateway answers at http://127.0.0.1:1: start one with `ratelimit serve`\n"
	for _, args := range []string{"status", "status --watch", "key list", "key create p", "key rotate id", "key revoke id"} {
		if got := run(t, strings.Fields(args)...); got.code != exitFailed || got.stderr != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(t, "__complete", "key", "revoke", ""); got.code != exitFine {
		t.Errorf("completion: %+v", got)
	}
}

func TestNoAdminAPI(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer other.Close()
	got := run(t, "status", "--admin", other.URL)
	if got.code != exitFailed || !strings.Contains(got.stderr, "not the admin API of a gateway") {
		t.Errorf("%+v", got)
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		ip   net.IP
		tls  config.TLS
		want string
	}{
		{net.IPv4(127, 0, 0, 1), config.TLS{}, "http://127.0.0.1:80"},
		{net.IPv6loopback, config.TLS{Cert: "c", Key: "k"}, "https://[::1]:80"},
		{net.IPv6unspecified, config.TLS{}, "http://localhost:80"},
		{net.IPv4zero, config.TLS{}, "http://localhost:80"},
	} {
		if got := address(&net.TCPAddr{IP: c.ip, Port: 80}, c.tls); got != c.want {
			t.Errorf("%v: %s, want %s", c.ip, got, c.want)
		}
	}
}
