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
			left := make(chan struct{})
			r := newRigBefore(t, batchRig, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/in/content"):
					io.WriteString(w, chatLines(1, 1000))
				case strings.HasSuffix(r.URL.Path, "/out/content"), strings.HasSuffix(r.URL.Path, "/resp_1"):
					io.WriteString(w, c.answer[:36])
					w.(http.Flusher).Flush()
					<-left
					io.WriteString(w, strings.Repeat(" ", 16<<20)) // more than connections hold, so that the gateway notices
					io.WriteString(w, c.answer[36:])
				case r.Method == "GET":
					io.WriteString(w, `{"data":[{"id":"b","status":"completed","output_file_id":"out"}]}`)
				case strings.HasSuffix(r.URL.Path, "/batches"):
					io.WriteString(w, submitted)
				default:
					io.WriteString(w, `{"id":"resp_1","status":"queued","usage":null}`)
				}
			}))
			if a := r.post(t, c.submit, c.body, "X-Project-ID", "acme"); a.status != 200 || r.noBatches(t) {
				t.Fatalf("%d %s", a.status, a.body)
			}
			ctx, leave := context.WithCancel(t.Context())
			request, _ := http.NewRequestWithContext(ctx, "GET", r.url+c.fetch, nil)
			request.Header.Set("X-Project-ID", "acme")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(answer.Body, make([]byte, 36)); err != nil {
				t.Fatal(err)
			}
			leave()
			answer.Body.Close()
			close(left)
			if r.settled(t); !r.noBatches(t) {
				t.Error("it is not settled")
			}
		})
	}
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
