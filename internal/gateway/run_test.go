package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

const threeCalls = `
providers:
  openai: {base_url: MOCK}
  anthropic: {base_url: MOCK}
  gemini: {base_url: MOCK}
users: {header: X-User-ID}
runs: {calls: 3}
`

// A run has its calls in total, whoever of a project makes them. Then agents are asked to stop.
func TestRuns(t *testing.T) {
	r := newRig(t, threeCalls, mockprovider.Config{})
	for _, user := range []string{"alice", "bob", "carol"} { // sub-agents hand the run on
		if a := r.post(t, chat, hello, "X-Project-ID", "acme", "X-User-ID", user, "X-Run-ID", "r-1"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for path, want := range map[string]string{
		chat:     `"code":"insufficient_quota","message":"not sent: run \"r-1\" has 0 of its 3 requests in total left: stop, or begin a new run"`,
		messages: `left: stop, or begin a new run","type":"billing_error"}`,
		generate: `"status":"FAILED_PRECONDITION"`,
	} {
		body := hello
		if path == generate {
			body = `{"contents":[]}`
		}
		a := r.post(t, path, body, "X-Project-ID", "acme", "X-Run-ID", "r-1")
		if a.status != 402 || !strings.Contains(a.body, want) || a.header.Get("X-Should-Retry") != "false" || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
		if rec := r.last(t); rec.Outcome != Denied || rec.Limit != "runs.calls" || rec.Run != "r-1" {
			t.Errorf("%s: %+v", path, rec)
		}
	}
	for _, other := range [][]string{
		{"X-Project-ID", "acme", "X-Run-ID", "r-2"},
		{"X-Project-ID", "other", "X-Run-ID", "r-1"}, // which is another run
		{"X-Project-ID", "acme/search", "X-Run-ID", "r-1"},
		{"X-Project-ID", "acme"},
	} {
		if a := r.post(t, chat, hello, other...); a.status != 200 {
			t.Errorf("%v: %d %s", other, a.status, a.body)
		}
	}
}

// A request that calls no model counts as a call of its run, too.
func TestRunsOfOtherRequests(t *testing.T) {
	r := newRig(t, threeCalls, mockprovider.Config{})
	for range 3 {
		r.do(t, "GET", "/openai/v1/models", "", "X-Run-ID", "r")
	}
	if a := r.do(t, "GET", "/openai/v1/models", "", "X-Run-ID", "r"); a.status != 402 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Without limits of runs, X-Run-ID has no meaning. No provider gets it.
func TestRunsOff(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}", upstream)
	if a := r.post(t, chat, hello, "X-Run-ID", "not valid", "X-User-ID", "alice"); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := <-upstream.requests; got.Header["X-Run-Id"] != nil || got.Header["X-User-Id"] != nil {
		t.Errorf("sent with %v", got.Header)
	}
	if rec := r.last(t); rec.Run != "" || rec.User != "" {
		t.Errorf("%+v", rec)
	}
}
