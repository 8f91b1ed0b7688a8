package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// waited serves streams that begin as those of the gateway do whose calls wait: with signs of life. They end in
// a denial, if it is set, or else as a mock's streams.
type waited struct {
	mock   http.Handler
	denial string
}

func (s *waited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, _ := dialect.Recognize(r.Method, r.URL)
	body, _ := io.ReadAll(r.Body) // as the gateway does, before the answer begins
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for range 2 {
		io.WriteString(w, endpoint.Idle(r.URL))
		w.(http.Flusher).Flush()
	}
	if s.denial == "" {
		s.mock.ServeHTTP(begun{w}, r)
		return
	}
	w.Write(endpoint.RefuseInStream(dialect.Refusal{Status: 429, Message: s.denial}))
}

// begun is an answer whose headers were sent.
type begun struct{ http.ResponseWriter }

func (b begun) WriteHeader(int) {}
func (b begun) Flush()          { b.ResponseWriter.(http.Flusher).Flush() }

// Every SDK ignores the signs of life of a stream whose call waits, and reports a denial that comes after them
// as an error.
func TestSDKsReadStreamsThatWaited(t *testing.T) {
	mock := mockprovider.New(mockprovider.Config{})
	serve := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	direct, passes, denies := serve(mock), serve(&waited{mock: mock}), serve(&waited{denial: "nothing is left today"})
	overEach(t, func(t *testing.T, s *sdk) {
		for _, call := range []string{"stream", "responses-stream"} {
			if !slices.Contains(slices.Concat(every, s.calls), call) {
				continue
			}
			do := func(url string) answer { return s.do(t, ask{Call: call, Base: url + s.root, Key: "k", Model: s.model}) }
			want, got := do(direct), do(passes)
			if got.Error != nil || len(got.Shown) == 0 || len(got.Shown) != len(want.Shown) {
				t.Errorf("%s: %d pieces, want %d: %+v", call, len(got.Shown), len(want.Shown), got.Error)
			}
			denied := do(denies)
			if denied.Error == nil || !strings.Contains(denied.Error.Message, "nothing is left today") || len(denied.Shown) != 0 {
				t.Errorf("%s, denied: %q, %+v", call, denied.Shown, denied.Error)
			}
		}
	})
}
