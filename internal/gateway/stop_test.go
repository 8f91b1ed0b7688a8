package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A client that sleeps for as long as Retry-After says must not sleep for a day: the body says when
// the budget comes back, and the headers of the limits still say where it stands.
func TestLongWaitsDoNotMakeClientsSleep(t *testing.T) {
	for _, c := range []struct{ path, body, shape, reasonHeader string }{
		{chat, hello, `"type":"usage_limit_reached"`, ""},
		{"/openai/v1/responses", `{"model":"gpt-4o","input":"Hello"}`, `"type":"usage_limit_reached"`, "X-Codex-Promo-Message"},
		{messages, hello, `"type":"rate_limit_error"`, ""},
		{generate, `{"contents":[]}`, `"status":"RESOURCE_EXHAUSTED"`, ""},
		{"/local/api/chat", hello, `{"error":"`, ""},
	} {
		r := newRig(t, oneOfEach+`
projects:
  small: {requests_per_day: 1}
`, mockprovider.Config{})
		if a := r.post(t, c.path, c.body, "X-Project-ID", "small"); a.status != 200 {
			t.Fatalf("%s: %d %s", c.path, a.status, a.body)
		}
		began := time.Now()
		a := r.post(t, c.path, c.body, "X-Project-ID", "small")
		if a.status != 429 || !strings.Contains(a.body, c.shape) || !strings.Contains(a.body, "try again in ") {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
		if a.header.Get("Retry-After") != "" || a.header.Get("Retry-After-Ms") != "" || strings.Contains(a.body, "retryDelay") || a.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: it makes clients sleep: %v %s", c.path, a.header, a.body)
		}
		if at := resetsAt(t, a.body); at.Before(began.Add(10*time.Minute)) || at.After(time.Now().Add(24*time.Hour+time.Second)) {
			t.Errorf("%s: it resets at %v", c.path, at)
		}
		if got := a.header.Get("RateLimit"); !strings.HasPrefix(got, `"requests_per_day";r=0;t=`) {
			t.Errorf("%s: RateLimit is %q", c.path, got)
		}
		if c.reasonHeader != "" && !strings.Contains(a.header.Get(c.reasonHeader), "not sent: ") {
			t.Errorf("%s: %v", c.path, a.header)
		}
	}
}

// resetsAt returns the time in the body of a refusal, beside its message.
func resetsAt(t *testing.T, body string) time.Time {
	t.Helper()
	var top, inner struct {
		ResetsAt int64           `json:"resets_at"`
		Error    json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &top); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	json.Unmarshal(top.Error, &inner) // Ollama's is a text
	return time.Unix(max(top.ResetsAt, inner.ResetsAt), 0)
}

// An operator may let clients sleep for as long as the wait is.
func TestRetryAfterMax(t *testing.T) {
	r := newRig(t, oneOfEach+`
server: {retry_after_max: 25h}
projects:
  small: {requests_per_day: 1}
`, mockprovider.Config{})
	r.post(t, chat, hello, "X-Project-ID", "small")
	a := r.post(t, chat, hello, "X-Project-ID", "small")
	if a.status != 429 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"code":"rate_limit_exceeded"`) || strings.Contains(a.body, "resets_at") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

// Clients take a 413 for too many bytes, and Claude Code takes a 400 for a feature that is missing.
func TestNeverIsNotMisread(t *testing.T) {
	r := newRig(t, oneOfEach+`
projects:
  small: {tokens_per_minute: 100}
`, mockprovider.Config{})
	long := strings.Repeat("word ", 2000)
	for _, c := range []struct {
		path, body string
		status     int
		shape      string
	}{
		{chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"` + long + `"}]}`, 400, `"code":"exceeds_limit"`},
		{"/openai/v1/responses", `{"model":"gpt-4o","input":"` + long + `"}`, 400, `"type":"invalid_request_error"`},
		{messages, `{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}]}`, 429, `"type":"invalid_request_error"`},
		{generate, `{"contents":[{"parts":[{"text":"` + long + `"}]}]}`, 400, `"status":"INVALID_ARGUMENT"`},
	} {
		a := r.post(t, c.path, c.body, "X-Project-ID", "small")
		if a.status != c.status || !strings.Contains(a.body, c.shape) || !strings.Contains(a.body, "can never pass") || a.header.Get("X-Should-Retry") != "false" || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %v %s", c.path, a.status, a.header, a.body)
		}
		if last := r.last(t); last.Outcome != Denied || last.Status != c.status {
			t.Errorf("%s: recorded as %+v", c.path, last)
		}
	}
}

// Codex shows a header in place of the message of a 429.
func TestPauseTellsCodexItsReason(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	r.pause(t, "acme", true)
	a := r.post(t, "/openai/v1/responses", `{"model":"gpt-4o","input":"Hello"}`, "X-Project-ID", "acme")
	reason := a.header.Get("X-Codex-Promo-Message")
	if a.status != http.StatusTooManyRequests || !strings.Contains(reason, `paused project "acme"`) || !strings.Contains(a.body, `"type":"usage_limit_reached"`) || !strings.Contains(a.body, `"code":"paused"`) {
		t.Errorf("%d %q %s", a.status, reason, a.body)
	}
}
