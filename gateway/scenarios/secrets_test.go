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

	"dappco.re/go/core/go-ratelimit/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// hidden are secrets, each in its place.
var hidden = struct{ openai, anthropic, team, token, redis, client, text string }{
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

// No secret is in the log, in what the admin API says, in metrics or in refusals, whatever
// goes wrong; and a provider sees no other than its own.
func TestSecrets(t *testing.T) {
	redis := redistest.New(t, "--user", "alice", "on", ">"+hidden.redis, "~*", "&*", "+@all", "--user", "default", "off")
	t.Setenv("SCENARIO_STATE", redis.LoginURL("alice", hidden.redis))
	t.Setenv("SCENARIO_TOKEN", hidden.token)
	t.Setenv("SCENARIO_ANTHROPIC", hidden.anthropic)
	t.Setenv("SCENARIO_TEAM", hidden.team)
	p, audit := newProvider(t), filepath.Join(t.TempDir(), "audit.jsonl")
	yaml := replaced(secretive, "KEY", secretFile(t, hidden.openai), "AUDIT", audit)
	file := written(t, yaml, p)
	g := launch(t, file, "", anywhere)
	manage := &admin.Client{Base: g.admin, Token: hidden.token, HTTP: client}
	key, err := manage.CreateKey(t.Context(), "search", "for tests", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{t: t, g: &g.door, key: key.Secret, said: &strings.Builder{}}
	s.goWrong()
	rewrite(t, file, yaml+"\nkeys: "+hidden.openai)
	g.tell(t, syscall.SIGHUP)
	g.log.await(t, "the old one stays", 1)
	rewrite(t, file, strings.Replace(yaml, "{env: SCENARIO_STATE}", redis.LoginURL("bob", hidden.redis), 1))
	g.tell(t, syscall.SIGHUP)
	g.log.await(t, "the old one stays", 2)
	s.look()
	redis.Kill()
	until(t, "Redis is lost", func() bool { return s.send(call{model: "m", key: s.key}.raw()) == 503 })
	s.look()
	g.tell(t, syscall.SIGTERM)
	g.wait(t)
	audited, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(audited), "key.create") {
		t.Fatalf("the audit log: %s, %v", audited, err)
	}
	virtual := key.Secret[strings.LastIndex(key.Secret, "-")+1:]
	for where, text := range map[string]string{"the log": g.log.String(), "the audit log": string(audited), "answers": s.said.String()} {
		for _, secret := range []string{hidden.openai, hidden.anthropic, hidden.team, hidden.token, hidden.redis, hidden.client, hidden.text, virtual} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s: %q is there: …%s…", where, secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	ownOnly(t, p.arrivals(""), virtual)
}

// ownOnly expects that a provider has seen no secret but its own, in its own place.
func ownOnly(t *testing.T, came []arrival, virtual string) {
	t.Helper()
	if len(came) < 5 {
		t.Errorf("only %d requests have come", len(came))
	}
	for _, a := range came {
		own := []string{hidden.openai, hidden.team}
		if strings.Contains(a.uri, "/messages") {
			own = []string{hidden.anthropic, hidden.openai}
		}
		seen := fmt.Sprint(a.uri, a.header)
		for _, secret := range own {
			seen = strings.ReplaceAll(seen, secret, "")
		}
		for _, secret := range []string{hidden.openai, hidden.anthropic, hidden.team, hidden.token, hidden.redis, hidden.client, virtual} {
			if strings.Contains(seen, secret) {
				t.Errorf("the provider has seen %q: %s %s", secret, a.uri, a.header)
			}
		}
	}
}

// spy is a client that has things go wrong, and listens.
type spy struct {
	t    *testing.T
	g    *door
	key  string
	said *strings.Builder
}

// send sends bytes, and keeps what is refused. It returns the status.
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

// goWrong sends requests with secrets wherever they can be, of which most are refused.
func (s *spy) goWrong() {
	s.t.Helper()
	own := "Authorization: Bearer " + s.key + "\r\n"
	other := "Cookie: session=" + hidden.client + "\r\nProxy-Authorization: Basic " + hidden.client + "\r\nX-Api-Key: " + hidden.client + "\r\n"
	body := replaced(good, "hello", hidden.text, `{"model"`, `{"max_tokens":9,"model"`)
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
		{sized(chat, "Authorization: Bearer "+hidden.client+"\r\n", body), 401},
		{sized(chat, "Authorization: Bearer "+s.key+hidden.client+"\r\n", body), 401},
		{sized(chat+"?key="+hidden.client, "", body), 401},
		{sized("/nobody/v1/chat?key="+s.key, own, body), 404},
		{get("http://user:"+hidden.client+"@gateway/openai/v1/models", ""), 401},
		{sized(chat, own, hidden.text), 400},
		{sized(chat, own, body+strings.Repeat(hidden.text, 8<<10)), 413},
		{sized(chat, own+"X-A: "+strings.Repeat(hidden.client, 1<<10)+"\r\n", body), 431},
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

// look keeps what the admin API says at all of its paths, to who has the token and who
// has not.
func (s *spy) look() {
	s.t.Helper()
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/state", "/v1/config", "/v1/quotas", "/v1/quotas/m", "/v1/projects",
		"/v1/projects/search", "/v1/keys", "/v1/decisions?limit=1000", "/v1/audit?limit=1000", "/v1/nothing?key=" + hidden.client,
	} {
		for _, token := range []string{hidden.token, "not-" + hidden.client} {
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
