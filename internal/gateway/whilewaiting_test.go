package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// busy is a provider that takes so long for its first call. Those that come later are answered at once, with a
// mock's answer or with this error.
type busy struct {
	first time.Duration
	next  http.Handler
	calls int // the second call begins when the first has ended
}

func (b *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if b.calls++; b.calls == 1 {
		time.Sleep(b.first)
	} else {
		b.next.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// bubbled is a gateway in a bubble, of which a call of each model holds the only slot for a while.
type bubbled struct {
	*Gateway
	log bytes.Buffer // is read when no request is under way
}

// newBubbled returns a gateway whose first call takes so long at the provider.
func newBubbled(t *testing.T, settings string, first time.Duration, next http.Handler) *bubbled {
	t.Helper()
	models := "models: {\"*\": {max_concurrent: 1}}"
	yaml := strings.NewReplacer("MODELS", models).Replace(`
state: memory
providers:
  openai: {base_url: MOCK, MODELS}
  anthropic: {base_url: MOCK, MODELS}
  gemini: {base_url: MOCK, MODELS}
  local: {base_url: MOCK, MODELS}
  cohere: {kind: cohere, base_url: MOCK, MODELS}
` + settings)
	b := &bubbled{}
	var err error
	if b.Gateway, err = New(gatewaytest.Config(t, yaml, "http://127.0.0.1:1"), Options{}); err != nil {
		t.Fatal(err)
	}
	b.access = newAccessLog(slog.New(slog.NewTextHandler(&b.log, nil)), 1)
	for _, u := range b.setup.Load().upstreams {
		for _, d := range u.deployments {
			d.transport = &busy{first: first, next: next}
		}
	}
	return b
}

// held sends a call while another holds the only slot, and returns the answer.
func (b *bubbled) held(path, body string) *httptest.ResponseRecorder {
	send := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest("POST", "http://127.0.0.1"+path, strings.NewReader(body)))
		return w
	}
	go send()
	synctest.Wait()
	w := send()
	synctest.Wait()
	return w
}

// failing answers as a provider that is overloaded.
var failing = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(503)
	w.Write([]byte("{\n  \"error\": {\"message\": \"overloaded\",\n \"type\": \"server_error\", \"code\": \"busy\"}\n}"))
})

// Streams of server-sent events get comments while their calls wait: one after 5 seconds, and then one every 15.
// An error that comes after that is an event in the form of the provider, and is recorded with its own status.
func TestStreamsGetCommentsWhileTheyWait(t *testing.T) {
	const comment, blank = ": waiting\n\n", "\n\n"
	for _, c := range []struct{ name, path, body, sign, denied, failed string }{
		{"chat", chat, streamed, comment, "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"not sent: ", "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":\"busy\"}}\n\ndata: [DONE]\n\n"},
		{"responses", "/openai/v1/responses", `{"model":"gpt-4o","stream":true,"input":"Hi"}`, comment, "event: error\ndata: {\"code\":\"rate_limit_exceeded\",\"error\":{\"code\":", "\n\nevent: response.failed\ndata: {\"response\":{\"error\":{\"code\":\"busy\",\"message\":\"overloaded\"}"},
		{"messages", messages, streamed, comment, "event: error\ndata: {\"error\":{\"message\":\"not sent: ", "event: error\ndata: {\"error\":{\"message\":\"overloaded\""},
		{"gemini", generateStream, `{"contents":[{"parts":[{"text":"Hi"}]}]}`, blank, "data: {\"error\":{\"code\":429,\"details\":[{", "data: {\"error\":{\"message\":\"overloaded\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled(t, "", 21*time.Second, mockprovider.New(mockprovider.Config{}))
				defer b.Close()
				w := b.held(c.path, c.body)
				got, _ := strings.CutPrefix(w.Body.String(), c.sign+c.sign)
				if kind := w.Header().Get("Content-Type"); w.Code != 200 || got == w.Body.String() || strings.HasPrefix(got, c.sign) || !strings.HasPrefix(kind, "text/event-stream") {
					t.Errorf("%d %s %q", w.Code, kind, w.Body)
				}
				if w.Header().Get(fieldID) == "" {
					t.Errorf("%v", w.Header())
				}
				if last := b.recordOf(t, w); last.Outcome != Passed || last.Status != 200 || last.Waited != 21*time.Second || last.Output == 0 || !last.Exact {
					t.Errorf("recorded as %+v", last)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled(t, "", time.Minute, nil)
				defer b.Close()
				w := b.held(c.path, c.body)
				if w.Code != 200 || !strings.HasPrefix(w.Body.String(), c.sign+c.sign+c.denied) || !strings.HasSuffix(w.Body.String(), "\n\n") {
					t.Errorf("%d %q", w.Code, w.Body)
				}
				last := b.recordOf(t, w)
				if last.Outcome != Denied || last.Status != 429 || last.Limit != "max_concurrent" || last.Waited != 30*time.Second {
					t.Errorf("recorded as %+v", last)
				}
				if got := b.log.String(); !strings.Contains(got, "outcome=denied") || !strings.Contains(got, "status=429") {
					t.Errorf("logged as %s", got)
				}
				counted := gathered(t, b.metrics, "ratelimit_gateway_requests_total")
				if counted[fmt.Sprint([]string{"denied", last.Provider, "429"})] != 1 {
					t.Errorf("counted as %v", counted)
				}
				time.Sleep(time.Minute) // the first call ends
			})
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled(t, "", 6*time.Second, failing)
				defer b.Close()
				w := b.held(c.path, c.body)
				if w.Code != 200 || !strings.HasPrefix(w.Body.String(), c.sign) || !strings.Contains(w.Body.String(), c.failed) {
					t.Errorf("%d %q", w.Code, w.Body)
				}
				if last := b.recordOf(t, w); last.Status != 503 || last.Outcome == Passed {
					t.Errorf("recorded as %+v", last)
				}
			})
		})
	}
}

// recordOf returns the record of the request that was answered so.
func (b *bubbled) recordOf(t *testing.T, w *httptest.ResponseRecorder) Record {
	t.Helper()
	for _, rec := range b.Recent("", 0, maxRecent) {
		if rec.ID == w.Header().Get(fieldID) {
			return rec
		}
	}
	t.Fatal("the request was not recorded")
	return Record{}
}

// A call that ends before the first comment is due, one that is no stream of server-sent events, and one of a gateway
// that is to send nothing keep their statuses and headers.
func TestCallsThatGetNoComments(t *testing.T) {
	for _, c := range []struct {
		name, settings, path, body string
		first                      time.Duration
		status                     int
		interim                    int // how often 103 was sent
	}{
		{"a short wait", "", chat, streamed, 4 * time.Second, 503, 0},
		{"no stream", "", chat, hello, 21 * time.Second, 503, 0},
		{"Ollama", "", "/local/api/chat", streamed, 21 * time.Second, 503, 0},
		{"Cohere", "", "/cohere/v2/chat", streamed, 21 * time.Second, 503, 0},
		{"Gemini's array", "", strings.TrimSuffix(generateStream, "?alt=sse"), `{"contents":[]}`, 21 * time.Second, 503, 0},
		{"nothing", "server: {while_waiting: nothing}", chat, streamed, 21 * time.Second, 503, 0},
		{"early hints", "server: {while_waiting: early_hints}", chat, hello, 21 * time.Second, 503, 2},
		{"early hints for a denial", "server: {while_waiting: early_hints}", chat, hello, time.Minute, 429, 2},
		{"early hints and a stream", "server: {while_waiting: early_hints}", chat, streamed, 21 * time.Second, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled(t, c.settings, c.first, failing)
				defer b.Close()
				send := func(w http.ResponseWriter) {
					b.ServeHTTP(w, httptest.NewRequest("POST", "http://127.0.0.1"+c.path, strings.NewReader(c.body)))
				}
				go send(httptest.NewRecorder())
				synctest.Wait()
				w := &interimCounter{ResponseRecorder: httptest.NewRecorder()}
				send(w)
				if begun := strings.HasPrefix(w.Body.String(), ":"); w.Code != c.status || begun != (c.status == 200) || w.interim != c.interim {
					t.Errorf("%d after %d interim answers: %q", w.Code, w.interim, w.Body)
				}
				time.Sleep(time.Minute) // the first call ends
			})
		})
	}
}

// interimCounter counts interim answers, which the recorder would take for the answer.
type interimCounter struct {
	*httptest.ResponseRecorder
	interim int
}

func (w *interimCounter) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		w.interim++
		return
	}
	w.ResponseRecorder.WriteHeader(status)
}
