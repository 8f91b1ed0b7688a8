package admin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// There are no more streams than allowed. A client beyond that gets an error that says what to do, and gets a stream when
// another has ended.
func TestTooManyStreams(t *testing.T) {
	r := newRig(t, usual)
	r.maxStreams = 2
	first := r.follows(t, "/v1/events")
	r.follows(t, "/v1/events?kind=pause")
	for _, path := range []string{"/v1/events", "/v1/overview/live"} {
		answer, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		bytes, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		text := string(bytes)
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "2 streams are open") || !strings.Contains(text, "close those that nobody reads") {
			t.Errorf("%s: %d %v %s", path, answer.StatusCode, answer.Header, text)
		}
	}
	first.end()
	testkit.Eventually(t, "the stream has ended", func() bool { return r.streams.Load() == 1 })
	r.follows(t, "/v1/events")
}
