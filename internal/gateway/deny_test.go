package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A call that a limit denies gets an answer in the form of its provider, with all headers
// that the SDKs read. Nothing is sent.
func TestDenied(t *testing.T) {
	r := newRig(t, oneOfEach+`
defaults: {max_wait: 0s}
projects:
  small: {requests_per_minute: 1, tokens_per_day: 1000}
`, mockprovider.Config{})
	for _, c := range []struct {
		path, body, shape string
		fields            []string
	}{
		{chat, hello, `"code":"rate_limit_exceeded"`, []string{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Limit-Tokens"}},
		{messages, hello, `"type":"rate_limit_error"`, []string{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"}},
		{generate, `{"contents":[]}`, `"status":"RESOURCE_EXHAUSTED"`, nil},
		{"/local/api/chat", hello, `{"error":"`, nil},
		{"/openai/v1/models", "", `"code":"rate_limit_exceeded"`, nil},
	} {
		if err := r.Projects().Reset(t.Context(), "small"); err != nil {
			t.Fatal(err)
		}
		method := http.MethodPost
		if c.body == "" {
			method = http.MethodGet
		}
		first := r.do(t, method, c.path, c.body, "X-Project-ID", "small")
		if first.status != 200 || first.header.Get("RateLimit-Policy") == "" || !strings.Contains(first.header.Get("RateLimit"), `"requests_per_minute";r=0;t=`) {
			t.Errorf("%s: %d %v %s", c.path, first.status, first.header, first.body)
		}
		before := served(r)
		a := r.do(t, method, c.path, c.body, "X-Project-ID", "small")
		if a.status != 429 || !strings.Contains(a.body, c.shape) || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, "try again in ") {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil || seconds < 58 || seconds > 60 {
			t.Errorf("%s: Retry-After is %q", c.path, a.header.Get("Retry-After"))
		}
		if ms, err := strconv.Atoi(a.header.Get("Retry-After-Ms")); err != nil || ms > seconds*1000 || ms <= seconds*1000-1000 {
			t.Errorf("%s: Retry-After-Ms is %q", c.path, a.header.Get("Retry-After-Ms"))
		}
		if a.header.Get("X-Should-Retry") != "true" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", c.path, a.header)
		}
		if got := a.header.Get("RateLimit"); !strings.HasPrefix(got, `"requests_per_minute";r=0;t=`) {
			t.Errorf("%s: RateLimit is %q", c.path, got)
		}
		for _, field := range c.fields {
			if a.header.Get(field) == "" {
				t.Errorf("%s: no %s", c.path, field)
			}
		}
		last := r.last(t)
		testkit.Equal(t, "the record of "+c.path, Record{Outcome: Denied, Limit: "requests_per_minute", Status: 429}, Record{Outcome: last.Outcome, Limit: last.Limit, Status: last.Status})
		if served(r) != before {
			t.Errorf("%s: it was sent", c.path)
		}
	}
}

// served returns how many calls the provider has got.
func served(r *rig) (n int) {
	for _, total := range r.provider.Totals() {
		n += total.Requests + total.Refused
	}
	return n
}

// A call that can never pass is refused at once, and the answer says so.
func TestNever(t *testing.T) {
	r := newRig(t, oneOfEach+`
projects:
  small: {tokens_per_minute: 100}
`, mockprovider.Config{})
	long := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("word ", 2000))
	a := r.post(t, chat, long, "X-Project-ID", "small")
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, `"code":"exceeds_limit"`) || a.header.Get("X-Should-Retry") != "false" || a.header.Get("Retry-After") != "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if reset, err := time.ParseDuration(a.header.Get("X-Ratelimit-Reset-Requests")); err != nil || reset > 62*time.Second {
		t.Errorf("requests a minute are to come back in %v, %v", reset, err)
	}
	if last := r.last(t); last.Outcome != Denied || last.Waited > time.Second {
		t.Errorf("recorded as %+v", last)
	}
}

// The refusal of an invalid request says what is wrong and what is allowed. Nothing is sent,
// and nothing is charged.
func TestBadRequests(t *testing.T) {
	r := newRig(t, oneOfEach+`
server: {max_body: 1KiB}
defaults: {requests_per_minute: 1}
`, mockprovider.Config{})
	for _, c := range []struct {
		path, body string
		headers    []string
		status     int
		says       string
	}{
		{"/", "", nil, 404, "/anthropic/, /gemini/, /local/, /openai/"},
		{"/nobody/v1/chat/completions", hello, nil, 404, `no provider is named \"nobody\"`},
		{"/openai/v1/../secret", hello, nil, 400, `\"..\"`},
		{"/openai/%2e%2e/secret", hello, nil, 400, `\"..\"`},
		{chat, `{"model":`, nil, 400, ""},
		{chat, `[1]`, nil, 400, "must be an object"},
		{chat, `{"model":"a","model":"b"}`, nil, 400, "two fields"},
		{chat, hello + strings.Repeat(" ", 2000), nil, 413, "1024 bytes"},
		{chat, hello, []string{"Content-Encoding", "compress"}, 415, "Content-Encoding"},
		{chat, `{"model":"` + strings.Repeat("m", 600) + `"}`, nil, 400, "512"},
	} {
		a := r.post(t, c.path, c.body, c.headers...)
		if a.status != c.status || !strings.Contains(a.body, c.says) || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
		testkit.Equal(t, "the outcome of "+c.path, Refused, r.last(t).Outcome)
	}
	if served(r) != 0 {
		t.Error("something was sent")
	}
	if a := r.post(t, chat, hello); a.status != 200 {
		t.Errorf("something was charged: %d %s", a.status, a.body)
	}
}

// A call that its project's share denies gets a 429 in the form of its provider, which says so.
func TestDeniedByAShare(t *testing.T) {
	r := newRig(t, `
state: memory
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 4}}}
  anthropic: {base_url: MOCK, models: {claude-sonnet-4: {max_rpm: 4}}}
  gemini: {base_url: MOCK, models: {gemini-2.5-pro: {max_rpm: 4}}}
defaults: {max_wait: 0s}
projects:
  capped: {max_share: 25%}
`, mockprovider.Config{})
	for _, c := range []struct {
		path, body, model, shape string
		fields                   map[string]string
	}{
		{chat, hello, "gpt-4o", `"code":"rate_limit_exceeded"`, map[string]string{"X-Ratelimit-Limit-Requests": "1", "X-Ratelimit-Remaining-Requests": "0"}},
		{messages, strings.Replace(hello, "gpt-4o", "claude-sonnet-4", 1), "claude-sonnet-4", `"type":"rate_limit_error"`, map[string]string{"Anthropic-Ratelimit-Requests-Limit": "1", "Anthropic-Ratelimit-Requests-Remaining": "0"}},
		{generate, `{"contents":[]}`, "gemini-2.5-pro", `"status":"RESOURCE_EXHAUSTED"`, nil},
	} {
		if a := r.post(t, c.path, c.body, "X-Project-ID", "capped"); a.status != 200 {
			t.Fatalf("%s: %d %s", c.path, a.status, a.body)
		}
		r.settled(t)
		a := r.post(t, c.path, c.body, "X-Project-ID", "capped")
		says := fmt.Sprintf(`project \"capped\" has a share of 1 requests a minute of model \"%s\", and has used 1: try again in `, c.model)
		if a.status != 429 || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, c.shape) || !strings.Contains(a.body, says) {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 62 || a.header.Get("X-Should-Retry") != "true" {
			t.Errorf("%s: %v", c.path, a.header)
		}
		for field, want := range c.fields {
			testkit.Equal(t, c.path+" "+field, want, a.header.Get(field))
		}
		if last := r.last(t); last.Outcome != Denied || last.Limit != "max_rpm_share" {
			t.Errorf("%s: %+v", c.path, last)
		}
		if a := r.post(t, c.path, c.body, "X-Project-ID", "other"); a.status != 200 {
			t.Errorf("%s: others are served: %d %s", c.path, a.status, a.body)
		}
	}
}
