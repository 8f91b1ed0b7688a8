package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// secrets are the secrets of a gateway and its clients, by where they belong.
var secrets = struct{ openai, anthropic, team, token, redis, client, text string }{
	openai: "sk-openai-8c1f0a", anthropic: "sk-ant-5d7e21", team: "sk-team-90ab34", token: "admin-token-77aa01",
	redis: "redis-password-3f3f", client: "the-clients-own-4b2c", text: "what-was-said-11d9",
}

const secretive = `
keys: required
state: {env: SCENARIO_STATE}
admin: {token: {env: SCENARIO_TOKEN}, audit: AUDIT}
providers:
  openai: {base_url: MOCK, key: {file: KEY}, models: {m: {max_rpm: 1000, max_tpm: 5000}}}
  anthropic: {base_url: MOCK, key: {env: SCENARIO_ANTHROPIC}, timeout: 1s}
  team: {base_url: MOCK, deployments: {a: {key: {env: SCENARIO_TEAM}}, b: {key: {file: KEY}}}}
  down: {base_url: "http://127.0.0.1:1", key: {file: KEY}, retries: 1}
defaults: {max_wait: 100ms}
server: {max_body: 64KiB, max_header: 8KiB, body_timeout: 1s}
log: {level: debug}
`

// Whatever goes wrong, no secret is in the log, in an answer of the admin API, in metrics or in
// a refusal, and a provider gets only its own secret.
func TestSecrets(t *testing.T) {
	redis := redistest.New(t, "--user", "alice", "on", ">"+secrets.redis, "~*", "&*", "+@all", "--user", "default", "off")
	t.Setenv("SCENARIO_STATE", redis.LoginURL("alice", secrets.redis)+"?timeout=10s") // longer than a busy machine takes
	t.Setenv("SCENARIO_TOKEN", secrets.token)
	t.Setenv("SCENARIO_ANTHROPIC", secrets.anthropic)
	t.Setenv("SCENARIO_TEAM", secrets.team)
	p, audit := newProvider(t), filepath.Join(t.TempDir(), "audit.jsonl")
	yaml := replaced(secretive, "KEY", secretFile(t, secrets.openai), "AUDIT", audit)
	file := written(t, yaml, p)
	g := launch(t, file, "")
	manage := &admin.Client{Base: g.admin, Token: secrets.token, HTTP: client}
	key, err := manage.CreateKey(t.Context(), admin.NewKey{Project: "search", Name: "for tests"})
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{t: t, g: &g.gatewayURLs, key: key.Secret, said: &strings.Builder{}}
	s.goWrong()
	rewrite(t, file, yaml+"\nkeys: "+secrets.openai)
	g.signal(t, syscall.SIGHUP)
	g.log.Await(t, "the old one stays")
	rewrite(t, file, strings.Replace(yaml, "{env: SCENARIO_STATE}", redis.LoginURL("bob", secrets.redis), 1))
	g.signal(t, syscall.SIGHUP)
	g.log.AwaitTimes(t, "the old one stays", 2)
	s.look()
	redis.Kill()
	testkit.Eventually(t, "Redis is lost", func() bool { return s.send(call{model: "m", key: s.key}.raw()) == 503 })
	s.look()
	g.signal(t, syscall.SIGTERM)
	g.wait(t)
	audited, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(audited), "key.create") {
		t.Fatalf("the audit log: %s, %v", audited, err)
	}
	virtual := key.Secret[strings.LastIndex(key.Secret, "-")+1:]
	for where, text := range map[string]string{"the log": g.log.String(), "the audit log": string(audited), "answers": s.said.String()} {
		for _, secret := range []string{secrets.openai, secrets.anthropic, secrets.team, secrets.token, secrets.redis, secrets.client, secrets.text, virtual} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s: %q is there: …%s…", where, secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	ownOnly(t, p.arrivals(""), virtual)
}

// ownOnly expects that a provider has got only its own secret, in the header for it.
func ownOnly(t *testing.T, came []arrival, virtual string) {
	t.Helper()
	if len(came) < 5 {
		t.Errorf("only %d requests have come", len(came))
	}
	for _, a := range came {
		own := []string{secrets.openai, secrets.team}
		if strings.Contains(a.uri, "/messages") {
			own = []string{secrets.anthropic, secrets.openai}
		}
		seen := fmt.Sprint(a.uri, a.header)
		for _, secret := range own {
			seen = strings.ReplaceAll(seen, secret, "")
		}
		for _, secret := range []string{secrets.openai, secrets.anthropic, secrets.team, secrets.token, secrets.redis, secrets.client, virtual} {
			if strings.Contains(seen, secret) {
				t.Errorf("the provider has seen %q: %s %s", secret, a.uri, a.header)
			}
		}
	}
}

// spy is a client that makes things go wrong, and keeps every answer.
type spy struct {
	t    *testing.T
	g    *gatewayURLs
	key  string
	said *strings.Builder
}

// send sends bytes, keeps the answer if it is a refusal, and returns the status.
func (s *spy) send(raw string) int {
	s.t.Helper()
	c := connect(s.t, s.g.address())
	defer c.Close()
	response, err := c.send(raw)
	if err != nil {
		return none
	}
	body, _ := io.ReadAll(response.Body)
	fmt.Fprintln(s.said, response.Status, response.Header)
	if response.StatusCode >= 400 {
		s.said.Write(body)
	}
	return response.StatusCode
}

// goWrong sends requests with secrets in every part. Most of them are refused.
func (s *spy) goWrong() {
	s.t.Helper()
	own := "Authorization: Bearer " + s.key + "\r\n"
	other := "Cookie: session=" + secrets.client + "\r\nProxy-Authorization: Basic " + secrets.client + "\r\nX-Api-Key: " + secrets.client + "\r\n"
	body := replaced(good, "hello", secrets.text, `{"model"`, `{"max_tokens":9,"model"`)
	for _, c := range []struct {
		raw  string
		want int
	}{
		{sized(chat, own+other, body), 200},
		{sized(chat, "X-Api-Key: "+s.key+"\r\n", body), 200},
		{sized(chat+"?key="+s.key, "", body), 200},
		{sized("/anthropic/v1/messages", "X-Api-Key: "+s.key+"\r\n", body), 200},
		{sized("/team/v1/chat/completions", "X-Goog-Api-Key: "+s.key+"\r\n", body), 200},
		{get("/openai/v1/models?key="+s.key+"&alt=sse", ""), 200},
		{sized(chat, "Authorization: Bearer "+secrets.client+"\r\n", body), 401},
		{sized(chat, "Authorization: Bearer "+s.key+secrets.client+"\r\n", body), 401},
		{sized(chat+"?key="+secrets.client, "", body), 401},
		{sized("/nobody/v1/chat?key="+s.key, own, body), 404},
		{get("http://user:"+secrets.client+"@gateway/openai/v1/models", ""), 401},
		{sized(chat, own, secrets.text), 400},
		{sized(chat, own, body+strings.Repeat(secrets.text, 8<<10)), 413},
		{sized(chat, own+"X-A: "+strings.Repeat(secrets.client, 1<<10)+"\r\n", body), 431},
		{sized(chat, own+"X-A: \x00\r\n", body), 400},
		{sized(chat, own+"X-Mock: output=4000\r\n", replaced(body, "9", "9000")), 429},
		{sized(chat, own+"X-Mock: status=500\r\n", body), 500},
		{sized(chat, own+"X-Mock: status=401\r\n", body), 401},
		{sized("/down/v1/chat/completions", own, body), 502},
		{get("/down/v1/models?key="+s.key, ""), 502},
		{sized("/anthropic/v1/messages", own+"X-Mock: delay=5s\r\n", body), 504},
		{sized(chat, own+"X-Mock: fault=reset\r\n", body), 502},
		{sized(chat, own+"X-Mock: fault=reset after=2\r\n", replaced(body, `"model"`, `"stream":true,"model"`)), 200},
	} {
		if got := s.send(c.raw); got != c.want {
			s.t.Errorf("%.300q: %d, want %d", c.raw, got, c.want)
		}
	}
}

// look keeps the admin API's answers at all of its paths, with the token and without.
func (s *spy) look() {
	s.t.Helper()
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/state", "/v1/config", "/v1/quotas", "/v1/quotas/m", "/v1/projects",
		"/v1/projects/search", "/v1/keys", "/v1/decisions?limit=1000", "/v1/audit?limit=1000", "/v1/nothing?key=" + secrets.client,
	} {
		for _, token := range []string{secrets.token, "not-" + secrets.client} {
			r, err := http.NewRequest(http.MethodGet, s.g.admin+path, nil)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			a, err := do(r)
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintln(s.said, a.status, a.header, a.body)
		}
	}
}
