package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// stepper is a provider that sends a text whenever the test says so.
type stepper struct {
	pieces chan string
	gone   chan struct{} // the provider closes it when its client has left
}

func (s *stepper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	http.NewResponseController(w).Flush()
	for {
		select {
		case piece, ok := <-s.pieces:
			if !ok {
				return
			}
			io.WriteString(w, piece)
			http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			close(s.gone)
			return
		}
	}
}

func open(t *testing.T, ctx context.Context, r *rig, path, body string, project ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header[fieldProject] = project
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// unasked is a request for a stream that does not ask for usage.
const unasked = `{"model":"gpt-4o","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`

const streamed = `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`

// The headers of a stream come before its first byte, and every piece comes at once.
func TestStreamsWithoutDelay(t *testing.T) {
	provider := &stepper{pieces: make(chan string)}
	r := newRigBefore(t, oneOfEach, provider)
	for _, body := range []string{streamed, unasked} { // the client sees the usage, or does not
		provider.pieces = make(chan string)
		response := open(t, t.Context(), r, chat, body)
		lines := bufio.NewReader(response.Body)
		for i := range 3 {
			piece := fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			provider.pieces <- piece
			got, err := lines.ReadString('\n')
			if err != nil || got+"\n" != piece {
				t.Fatalf("%q, %v", got, err)
			}
			lines.ReadString('\n')
		}
		close(provider.pieces)
		if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
	}
}

// A client that leaves frees its upstream connection and its concurrency slot at once. What was
// reserved for the answer stays charged, because the provider may have generated all of it.
func TestClientLeaves(t *testing.T) {
	provider := &stepper{pieces: make(chan string), gone: make(chan struct{})}
	r := newRigBefore(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_tpm: 10000, max_concurrent: 1}}}
server: {read_on: 10ms}
`, provider)
	ctx, leave := context.WithCancel(t.Context())
	response := open(t, ctx, r, chat, streamed)
	provider.pieces <- "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n"
	if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if s := r.Models().Stats("gpt-4o"); s.Concurrent != 1 || s.TPM < 50 {
		t.Errorf("while it runs: %+v", s)
	}
	leave()
	select {
	case <-provider.gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the provider's connection stays open")
	}
	last := r.last(t)
	if s := r.Models().Stats("gpt-4o"); s.Concurrent != 0 || s.TPM < 50 {
		t.Errorf("after it has left: %+v", s)
	}
	testkit.Equal(t, "the record", Record{Outcome: Left, Output: 50}, Record{Outcome: last.Outcome, Output: last.Output, Exact: last.Exact})
}

// A client that leaves while its call waits pays nothing, and the next call gets its turn.
func TestClientLeavesTheLine(t *testing.T) {
	provider := &stepper{pieces: make(chan string)}
	r := newRigBefore(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_concurrent: 1}}}
`, provider)
	first := open(t, t.Context(), r, chat, streamed)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, "POST", r.url+chat, strings.NewReader(streamed))
		_, err := http.DefaultClient.Do(req)
		left <- err
	}()
	testkit.Eventually(t, "a call waits", func() bool { return r.Models().Waiting("gpt-4o") == 1 })
	leave()
	if err := <-left; err == nil {
		t.Error("it was answered")
	}
	testkit.Eventually(t, "nobody waits", func() bool { return r.Models().Waiting("gpt-4o") == 0 && r.Active() == 1 })
	if last := r.Recent("", 0, 1); len(last) != 1 || last[0].Outcome != Left || last[0].Status != statusClientLeft {
		t.Errorf("recorded as %+v", last)
	}
	close(provider.pieces)
	io.Copy(io.Discard, first.Body)
	r.settled(t)
	if s := r.Models().Stats("gpt-4o"); s.Concurrent != 0 || s.RPM != 1 {
		t.Errorf("%+v", s)
	}
}

// deadlined is the writer of a client with a write deadline.
type deadlined struct {
	http.ResponseWriter
	until time.Time
}

func (d *deadlined) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deadlined) SetWriteDeadline(until time.Time) error {
	d.until = until
	return nil
}

// late is a body that ends long after its last byte.
type late struct{ io.Reader }

func (l late) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err == io.EOF {
		time.Sleep(time.Hour)
	}
	return n, err
}

// The client has as much time to take the end of a stream as its bytes, however late the end
// comes.
func TestStreamThatEndsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deadlined{ResponseWriter: httptest.NewRecorder()}
		x := &exchange{w: w, r: httptest.NewRequest("POST", chat, nil), control: http.NewResponseController(w), cfg: &config.Config{Server: config.Server{WriteTimeout: time.Minute}}}
		x.copy(late{strings.NewReader("data: [DONE]")}, &http.Response{ContentLength: -1})
		if left := time.Until(w.until); left != x.cfg.Server.WriteTimeout || x.Outcome != "" {
			t.Errorf("%v are left to write the end, and it is %q", left, x.Outcome)
		}
	})
}

// The outcome of a stream that ends in an error event is failed.
func TestStreamsThatEndInAnErrorHaveFailed(t *testing.T) {
	for _, c := range []struct{ path, body string }{
		{chat, streamed},
		{chat, unasked},
		{messages, streamed},
		{"/openai/v1/responses", `{"model":"gpt-4o","stream":true,"input":"Hi"}`},
		{generateStream, `{"contents":[{"parts":[{"text":"Hi"}]}]}`},
		{"/local/api/chat", streamed},
	} {
		var log bytes.Buffer // the test reads it after the request has ended
		r := newRig(t, oneOfEach, mockprovider.Config{})
		r.access = newAccessLog(slog.New(slog.NewTextHandler(&log, nil)), 1)
		a := r.post(t, c.path, c.body, "X-Mock", "fault=error after=3")
		last := r.last(t)
		if a.status != 200 || last.Outcome != Failed || !strings.Contains(last.Error, "ends in an error") {
			t.Errorf("%s: %d, recorded as %+v", c.path, a.status, last)
		}
		if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "outcome=failed") {
			t.Errorf("%s: logged as %s", c.path, got)
		}
		counted := gathered(t, r.metrics, "ratelimit_gateway_requests_total")
		if len(counted) != 1 || counted[fmt.Sprint([]string{"failed", last.Provider, "2xx"})] != 1 {
			t.Errorf("%s: counted as %v", c.path, counted)
		}
	}
}

// An answer that breaks off, streamed or not, breaks off for the client, too.
func TestBrokenStreams(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	for _, c := range []struct{ path, body, fault string }{
		{chat, streamed, "fault=reset after=3"},
		{chat, strings.Replace(streamed, `"stream_options":{"include_usage":true},`, "", 1), "fault=reset after=3"},
		{messages, streamed, "fault=reset after=3"},
		{"/gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"Hi"}]}]}`, "fault=reset after=2"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", r.url+c.path, strings.NewReader(c.body))
		req.Header.Set("X-Mock", c.fault)
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 200 || err == nil || len(text) == 0 {
			t.Errorf("%s: %d %q, %v", c.path, response.StatusCode, text, err)
		}
		if last := r.last(t); last.Outcome != Failed || last.Error == "" || last.Output == 0 {
			t.Errorf("%s: recorded as %+v", c.path, last)
		}
	}
}

// A call whose answer reports its output alone is logged with the input that it was charged.
func TestRecordOfAnAnswerWithoutInput(t *testing.T) {
	r := newRigBefore(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_tpm: 10000}}}
`, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":7}}`)
	}))
	r.post(t, chat, `{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`)
	last := r.last(t)
	charged := r.Models().Stats("gpt-4o").TPM
	if last.Output != 7 || last.Input <= 0 || last.Input+last.Output != charged {
		t.Errorf("of %d tokens that were charged, the record has %d and %d", charged, last.Input, last.Output)
	}
}
