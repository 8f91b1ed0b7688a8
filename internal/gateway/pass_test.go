package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A request that is no call of a model passes unchanged, and counts as a request of its
// project.
func TestPass(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach+`
defaults: {requests_per_minute: 100}
`, upstream)
	for i, c := range []struct{ method, path, body string }{
		{"GET", "/openai/v1/models?limit=3", ""},
		{"POST", "/openai/v1/files", strings.Repeat("file", 100_000)},
		{"DELETE", "/openai/v1/files/file-1", ""},
		{"POST", "/anthropic/v1/messages/count_tokens", hello},
		{"POST", "/openai/v1/a%20b%2Fc", "x"},
	} {
		a := r.do(t, c.method, c.path, c.body, "Accept-Encoding", "br")
		if a.status != 200 || !strings.Contains(a.header.Get("RateLimit"), fmt.Sprintf("r=%d;", 99-i)) {
			t.Errorf("%s: %d %v", c.path, a.status, a.header)
		}
		got, body := <-upstream.requests, <-upstream.bodies
		_, path, _ := strings.Cut(c.path[1:], "/")
		if got.Method != c.method || got.RequestURI != "/"+path || body != c.body || got.Header.Get("Accept-Encoding") != "br" {
			t.Errorf("%s: sent as %s %s with %d bytes and %v", c.path, got.Method, got.RequestURI, len(body), got.Header)
		}
		if last := r.last(t); last.Outcome != Passed || last.Model != "" {
			t.Errorf("%s: recorded as %+v", c.path, last)
		}
	}
}

// raw sends bytes to the gateway, and returns the status line of the answer, or "" if there is
// none.
func (r *rig) raw(t *testing.T, text string, close bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, text)
	if close {
		conn.(*net.TCPConn).CloseWrite()
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

// A body that does not come, or breaks off, ends the request without a successful answer.
func TestBodiesThatDoNotCome(t *testing.T) {
	r := newRigBefore(t, oneOfEach+`
server: {body_timeout: 100ms}
`, newSeen())
	for _, c := range []struct {
		path, rest string
		close      bool
		want       string
	}{
		{chat, "Content-Length: 100\r\n\r\n{", false, "HTTP/1.1 408 Request Timeout"},
		{chat, "Content-Length: 100\r\n\r\n{", true, ""},
		{chat, "Transfer-Encoding: chunked\r\n\r\nzz\r\n", false, "HTTP/1.1 400 Bad Request"},
		{"/openai/v1/files", "Content-Length: 100\r\n\r\n{", false, "HTTP/1.1 408 Request Timeout"},
		{"/openai/v1/files", "Content-Length: 2000000000\r\n\r\n{", false, "HTTP/1.1 413 Request Entity Too Large"},
	} {
		got := r.raw(t, "POST "+c.path+" HTTP/1.1\r\nHost: gateway\r\n"+c.rest, c.close)
		if got != c.want {
			t.Errorf("%s %q: %q", c.path, c.rest, got)
		}
		r.settled(t)
	}
}

// A client that has closed its half of the connection does not get an incomplete answer that
// looks complete.
func TestHalfClosed(t *testing.T) {
	provider := &stepper{pieces: make(chan string), gone: make(chan struct{})}
	r := newRigBefore(t, oneOfEach+"server: {read_on: 10ms}\n", provider)
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\n\r\n%s", chat, len(streamed), streamed)
	provider.pieces <- "data: {}\n\n"
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	<-provider.gone
	if text, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("it looks whole: %q", text)
	}
}

// The memory of all bodies that wait is bounded. A request beyond it is refused and may come
// again, and there is memory as soon as other requests are answered.
func TestBodiesAreBounded(t *testing.T) {
	provider := &stepper{pieces: make(chan string)}
	r := newRigBefore(t, `
providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_concurrent: 1}}}}
server: {max_body: 1MiB, max_bodies: 1MiB}
`, provider)
	large := strings.Replace(streamed, "Hello", strings.Repeat("x", 600<<10), 1)
	first := open(t, t.Context(), r, chat, large) // its answer has begun, so it holds no memory any more
	second := make(chan answer)
	go func() { second <- r.post(t, chat, large) }()
	testkit.Eventually(t, "one waits", func() bool { return r.Models().Waiting("gpt-4o") == 1 })
	for _, body := range []io.Reader{strings.NewReader(large), io.MultiReader(strings.NewReader(large))} { // one body has a Content-Length, the other comes in chunks
		response, err := http.Post(r.url+chat, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 503 || response.Header.Get("X-Should-Retry") != "true" {
			t.Errorf("%d %v", response.StatusCode, response.Header)
		}
	}
	close(provider.pieces)
	io.Copy(io.Discard, first.Body)
	if a := <-second; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.settled(t)
	if n := r.bodyBytes.Load(); n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
}

// Batches of requests and remote procedure calls, in which all of Google's APIs take calls of
// models, too, are refused. Once, they passed as requests that call no model.
func TestCallsInWrappingsOfGooglesAreRefused(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, "providers: {gemini: {base_url: MOCK}, team: {kind: vertex, base_url: MOCK}, own: {base_url: MOCK}}\n", upstream)
	for _, path := range []string{
		"/batch", "/batch/v1beta", "/%62atch", "/Batch", "/$RPC/google.ai.generativelanguage.v1beta.GenerativeService/GenerateContent", "/$rpc/google.ai.generativelanguage.v1beta.GenerativeService/GenerateContent",
		"/%24rpc/x", "/google.ai.generativelanguage.v1beta.GenerativeService/GenerateContent",
	} {
		for _, provider := range []string{"/gemini", "/team"} {
			if a := r.post(t, provider+path, "x"); a.status != 400 || len(upstream.requests) > 0 {
				t.Errorf("%s%s: %d %s, %d sent", provider, path, a.status, a.body, len(upstream.requests))
			}
		}
	}
	for _, path := range []string{"/own/batch", "/gemini/v1beta/batches", "/team/v1/projects/p/locations/l/batchPredictionJobs"} {
		if a := r.post(t, path, "x"); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		<-upstream.requests
		<-upstream.bodies
	}
}

// A request to compact a conversation is a call of a model, and is charged to its quota.
func TestCompactingIsACall(t *testing.T) {
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 9}}}}\n", newSeen())
	if a := r.post(t, "/openai/v1/responses/compact", `{"model":"gpt-4o","input":"Hi"}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if s := r.Models().Stats("gpt-4o"); s.RPM != 1 || s.TPM != 7 {
		t.Errorf("%d requests and %d tokens are charged", s.RPM, s.TPM)
	}
}
