package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
)

// A client that leaves before the end of the results of a batch, or of a response, has settled them all the same.
func TestTheRestIsReadWhenTheClientLeaves(t *testing.T) {
	const response = `{"id":"resp_1","object":"response",    "status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":1}}`
	for _, c := range []struct{ name, submit, body, fetch, answer string }{
		{"a batch", "/openai/v1/batches", submission("in"), "/openai/v1/files/out/content", strings.Repeat("\n", 40) + goodResult},
		{"a response", "/openai/v1/responses", inBackground, "/openai/v1/responses/resp_1", response},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := New(gatewaytest.Config(t, batchRig, "http://127.0.0.1:1"), Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				r, provider := &rig{Gateway: g}, &resumed{answer: c.answer, left: make(chan struct{})}
				g.setup.Load().upstreams["openai"].deployments[0].transport = provider
				request := httptest.NewRequest("POST", "http://127.0.0.1"+c.submit, strings.NewReader(c.body))
				request.Header.Set("X-Project-ID", "acme")
				a := httptest.NewRecorder()
				g.ServeHTTP(a, request)
				if a.Code != 200 || r.noBatches(t) {
					t.Fatalf("%d %s", a.Code, a.Body)
				}
				ctx, leave := context.WithCancel(t.Context())
				served := make(chan struct{})
				client := leaving{httptest.NewRecorder(), ctx}
				go func() {
					defer close(served)
					defer func() { recover() }() // the gateway breaks the connection off
					request := httptest.NewRequest("GET", "http://127.0.0.1"+c.fetch, nil).WithContext(ctx)
					request.Header.Set("X-Project-ID", "acme")
					g.ServeHTTP(client, request)
				}()
				synctest.Wait()
				leave()
				close(provider.left)
				<-served
				if got := client.Body.String(); got != c.answer[:36] || !r.noBatches(t) {
					t.Errorf("the client has %q, and nothing is left to settle: %t", got, r.noBatches(t))
				}
			})
		})
	}
}

// resumed answers as a provider of batches and of responses does. It sends the begin of an answer that settles
// something, and the rest in two parts when the client has left.
type resumed struct {
	answer string
	left   chan struct{}
}

func (p *resumed) RoundTrip(r *http.Request) (*http.Response, error) {
	var body io.ReadCloser
	switch {
	case strings.HasSuffix(r.URL.Path, "/in/content"):
		body = io.NopCloser(strings.NewReader(chatLines(1, 1000)))
	case strings.HasSuffix(r.URL.Path, "/out/content"), strings.HasSuffix(r.URL.Path, "/resp_1"):
		answer, w := io.Pipe()
		body = answer
		go func() {
			defer w.Close()
			io.WriteString(w, p.answer[:36])
			<-p.left
			io.WriteString(w, p.answer[36:40])
			io.WriteString(w, p.answer[40:])
		}()
	case r.Method == "GET":
		body = io.NopCloser(strings.NewReader(`{"data":[{"id":"b","status":"completed","output_file_id":"out"}]}`))
	case strings.HasSuffix(r.URL.Path, "/batches"):
		body = io.NopCloser(strings.NewReader(submitted))
	default:
		body = io.NopCloser(strings.NewReader(`{"id":"resp_1","status":"queued","usage":null}`))
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, Header: http.Header{}, Body: body, ContentLength: -1}, nil
}

// leaving is a client that takes nothing any more once its context has ended.
type leaving struct {
	*httptest.ResponseRecorder
	ctx context.Context
}

func (l leaving) Write(data []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	return l.ResponseRecorder.Write(data)
}

// silent answers a request with a body that has nothing until the context of the request ends.
type silent struct{ body *io.PipeWriter }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	s.body = w
	context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, Header: http.Header{}, Body: body, ContentLength: -1}, nil
}

// The rest of an answer does not come for ever: a provider that sends nothing any more keeps no request once the client
// has left.
func TestTheRestOfASilentAnswerIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(gatewaytest.Config(t, "providers: {openai: {base_url: MOCK}}", "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		provider := new(silent)
		g.setup.Load().upstreams["openai"].deployments[0].transport = provider
		ctx, leave := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer func() { recover() }() // the gateway breaks the connection off
			r := httptest.NewRequest("GET", "http://127.0.0.1/openai/v1/responses/resp_1?stream=true", nil).WithContext(ctx)
			g.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		leave()
		select {
		case <-served:
		case <-time.After(time.Minute):
			t.Error("the request goes on a minute after the client has left")
			provider.body.Close()
			<-served
		}
	})
}
