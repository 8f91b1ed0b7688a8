package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

const withRetries = `
providers:
  openai: {base_url: MOCK, retries: 2, models: {gpt-4o: {max_rpm: 100}}}
`

// A call is sent again if its provider allows that, before the first byte of the answer.
// Otherwise the client gets the provider's status and body. Each attempt is charged.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name    string
		replies []mockprovider.Reply
		status  int
		sent    int
	}{
		{"none is needed", []mockprovider.Reply{{}}, 200, 1},
		{"broken once", []mockprovider.Reply{{Status: 500, Header: retryAfter("0")}, {}}, 200, 2},
		{"broken for long", []mockprovider.Reply{{Status: 500, Header: retryAfter("0")}, {Status: 502, Header: retryAfter("0")}, {Status: 503, Code: "last"}}, 503, 3},
		{"the provider says no", []mockprovider.Reply{{Status: 500, Header: http.Header{"X-Should-Retry": {"false"}}}}, 500, 1},
		{"the provider says yes", []mockprovider.Reply{{Status: 418, Header: http.Header{"X-Should-Retry": {"true"}, "Retry-After": {"0"}}}, {}}, 200, 2},
		{"the client's fault", []mockprovider.Reply{{Status: 400}}, 400, 1},
		{"nobody has paid", []mockprovider.Reply{{Status: 429, Code: "insufficient_quota"}}, 429, 1},
		{"paused for a moment", []mockprovider.Reply{{Status: 429, Header: http.Header{"Retry-After-Ms": {"20"}}}, {}}, 200, 2},
		{"paused for too long", []mockprovider.Reply{{Status: 429, RetryAfter: time.Hour}}, 429, 1}, // the gateway does not wait for so long
		{"reset before an answer", []mockprovider.Reply{{Fault: mockprovider.FaultReset}}, 502, 1},
		{"an error in the stream", []mockprovider.Reply{{Fault: mockprovider.FaultError, After: 1}}, 200, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent atomic.Int32
			r := newRig(t, withRetries, mockprovider.Config{Script: func(call mockprovider.Call) mockprovider.Reply {
				return c.replies[min(int(sent.Add(1)), len(c.replies))-1]
			}})
			body := hello
			if strings.Contains(c.name, "stream") {
				body = strings.Replace(hello, "{", `{"stream":true,`, 1)
			}
			a := r.post(t, chat, body)
			if a.status != c.status || int(sent.Load()) != c.sent {
				t.Errorf("%d %s after %d attempts", a.status, a.body, sent.Load())
			}
			last := r.last(t)
			if last.Retries != c.sent-1 {
				t.Errorf("recorded as %+v", last)
			}
			if c.status != 200 && last.Outcome == Passed {
				t.Errorf("recorded as %+v", last)
			}
			if got := r.Models().Stats("gpt-4o").RPM; got != c.sent {
				t.Errorf("%d requests are counted", got)
			}
		})
	}
}

// The error of a provider that a client gets, because a limit denies the next attempt, is not recorded as
// that limit's.
func TestFallbackIsNoDenial(t *testing.T) {
	r := newRig(t, withRetries+"projects: {acme: {requests_per_day: 1}}\n", mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Status: 500, Header: retryAfter("0")}
	}})
	a := r.post(t, chat, hello, "X-Project-ID", "acme")
	if last := r.last(t); a.status != 500 || last.Outcome != Failed || last.Limit+last.Scope+last.Owner != "" {
		t.Errorf("%d %s, recorded as %+v", a.status, a.body, last)
	}
}

// A call that was refused because the account has not paid is not sent again.
func TestAccountHasNotPaid(t *testing.T) {
	var sent atomic.Int32
	r := newRig(t, withRetries+"defaults: {max_wait: 24h}\n", mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		sent.Add(1)
		return mockprovider.Reply{Status: 429, Code: "insufficient_quota"}
	}})
	if a := r.post(t, chat, hello); a.status != 429 || !strings.Contains(a.body, "insufficient_quota") || sent.Load() != 1 {
		t.Errorf("%d %s after %d attempts", a.status, a.body, sent.Load())
	}
}

// If one account is used up for long, the call goes to another.
func TestAnotherAccountHasPaid(t *testing.T) {
	t.Setenv("KEY_A", "sk-a")
	t.Setenv("KEY_B", "sk-b")
	for _, code := range []string{"insufficient_quota", "rate_limit_exceeded"} {
		r := newRig(t, `
providers:
  openai:
    retries: 1
    deployments: {a: {base_url: MOCK, key: {env: KEY_A}}, b: {base_url: MOCK, key: {env: KEY_B}}}
    models: {gpt-4o: {max_rpm: 10}}
`, mockprovider.Config{Script: func(call mockprovider.Call) mockprovider.Reply {
			if call.Header.Get("Authorization") == "Bearer sk-a" {
				return mockprovider.Reply{Status: 429, Code: code}
			}
			return mockprovider.Reply{}
		}})
		for range 3 {
			if a := r.post(t, chat, hello); a.status != 200 {
				t.Errorf("%s: %d %s", code, a.status, a.body)
			}
		}
	}
}

func retryAfter(seconds string) http.Header { return http.Header{"Retry-After": {seconds}} }

// A call to a provider that cannot be reached costs nothing, and is sent again.
func TestUnreachable(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: "http://127.0.0.1:1", models: {gpt-4o: {max_rpm: 100, max_tpm: 1000}}}
`, mockprovider.Config{})
	a := r.post(t, chat, hello)
	if a.status != http.StatusBadGateway || !strings.Contains(a.body, `the provider \"openai\" could not be reached`) || a.header.Get("X-Should-Retry") != "true" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if last := r.last(t); last.Outcome != Failed || last.Error == "" {
		t.Errorf("recorded as %+v", last)
	}
	if s := r.Models().Stats("gpt-4o"); s.RPM != 0 || s.TPM != 0 {
		t.Errorf("it was charged: %+v", s)
	}
}

// A call that could not be sent costs nothing, and goes to the next deployment, with either
// transport.
func TestNeverSent(t *testing.T) {
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	go func() {
		for conn, err := broken.Accept(); err == nil; conn, err = broken.Accept() {
			conn.Close() // before the TLS handshake
		}
	}()
	for _, http2 := range []string{"false", "true"} {
		r := newRig(t, strings.NewReplacer("BROKEN", "https://"+broken.Addr().String(), "HTTP2", http2).Replace(`
providers:
  openai:
    http2: HTTP2
    retries: 1
    deployments: {a: {base_url: BROKEN}, b: {base_url: MOCK}}
    models: {gpt-4o: {max_rpm: 10, max_tpm: 100000}}
`), mockprovider.Config{})
		if a := r.post(t, chat, hello); a.status != 200 {
			t.Errorf("http2 %s: %d %s", http2, a.status, a.body)
		}
		if s := r.Models().Stats("gpt-4o@a"); s.RPM != 0 || s.TPM != 0 {
			t.Errorf("http2 %s: it was charged: %+v", http2, s)
		}
	}
}

// A stream is sent again unchanged to a server that refuses the request for usage. The client
// gets any other error.
func TestServerThatReportsNoUsage(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
		again   bool
	}{
		{400, "Unrecognized request argument supplied: stream_options", true},
		{422, "include_usage: extra fields not permitted", true},
		{400, "nonsense", false},
		{404, "no stream_options here", false},
	} {
		var sent []string
		r := newRigBefore(t, oneOfEach, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = append(sent, string(body))
			if strings.Contains(string(body), "stream_options") {
				w.WriteHeader(c.status)
				io.WriteString(w, c.message)
				return
			}
			io.WriteString(w, "data: [DONE]\n\n")
		}))
		status, body, attempts := c.status, c.message, 1
		if c.again {
			status, body, attempts = 200, "data: [DONE]\n\n", 2
		}
		a := r.post(t, chat, unasked)
		if a.status != status || a.body != body || len(sent) != attempts || c.again && sent[1] != unasked {
			t.Errorf("%d %s: %d %s of %q", c.status, c.message, a.status, a.body, sent)
		}
		if s := r.Models().Stats("gpt-4o"); s.RPM != attempts {
			t.Errorf("%d %s: %+v", c.status, c.message, s)
		}
	}
}

// Calls go to the deployment with the most left of its quota, and not to a paused one.
func TestDeployments(t *testing.T) {
	t.Setenv("KEY_A", "sk-a")
	t.Setenv("KEY_B", "sk-b")
	var paused atomic.Bool
	r := newRig(t, `
providers:
  openai:
    deployments:
      a: {base_url: MOCK, key: {env: KEY_A}}
      b: {base_url: MOCK, key: {env: KEY_B}}
    models: {gpt-4o: {max_rpm: 10}}
`, mockprovider.Config{Script: func(call mockprovider.Call) mockprovider.Reply {
		if paused.Load() && call.Header.Get("Authorization") == "Bearer sk-a" {
			return mockprovider.Reply{Status: 429, RetryAfter: time.Hour}
		}
		return mockprovider.Reply{}
	}})
	got := map[string]int{}
	for range 10 {
		if a := r.post(t, chat, hello); a.status != 200 {
			t.Fatal(a.status, a.body)
		}
		got[r.last(t).Deployment]++
	}
	if got["a"] != 5 || got["b"] != 5 {
		t.Errorf("they went to %v", got)
	}
	paused.Store(true)
	for refused := 0; ; {
		a := r.post(t, chat, hello)
		if a.status == 200 && refused == 1 {
			break
		}
		if a.status == 429 {
			refused++
		}
		if refused > 1 {
			t.Fatal("a deployment that is paused got another call")
		}
	}
	for range 3 {
		if a := r.post(t, chat, hello); a.status != 200 || r.last(t).Deployment != "b" {
			t.Errorf("%d %s from %q", a.status, a.body, r.last(t).Deployment)
		}
	}
	if a := r.Models().Stats("gpt-4o@b"); a.MaxRPM != 10 || a.RPM < 8 {
		t.Errorf("%+v", a)
	}
}
