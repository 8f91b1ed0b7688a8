package httplimit

import (
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

// A body without a length, or with one that no body has, is not charged as a small one. The client is a
// real one: it sends chunks with HTTP/1.1, and frames with HTTP/2.
func TestBodiesOfAnyLengthAreNotFree(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			limiter := configured(t, project.Config{Default: &project.Limit{TokensPerDay: 100}, Limits: map[string]project.Limit{"free": {}}})
			var read atomic.Int64
			url, client := p.start(t, Middleware(limiter)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				read.Add(n)
			})))
			send := func(project string) (int, problem) {
				body := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000))) // of a type whose length the client does not know
				r, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set(HeaderProjectID, project)
				response, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode == 200 {
					return response.StatusCode, problem{}
				}
				return response.StatusCode, parseProblem(t, response.Header, text)
			}
			for range 5 {
				if status, problem := send("p"); status != http.StatusLengthRequired || !strings.Contains(problem.Detail, "Content-Length") {
					t.Errorf("%d: %+v", status, problem)
				}
			}
			if n, tokens := read.Load(), used(t, limiter); n != 0 || tokens != 0 {
				t.Errorf("the handler has read %d bytes, and %d tokens were charged: the limit is 100 tokens", n, tokens)
			}
			if status, _ := send("free"); status != 200 {
				t.Errorf("status %d for a project without a limit on tokens", status)
			}
		})
	}
	handler := Middleware(newLimiter(t, project.Limit{TokensPerDay: 100}))(&fine{})
	for _, length := range []int64{401, math.MaxInt64 - 3, math.MaxInt64} {
		r := request("POST")
		r.ContentLength = length
		if w := do(handler, r); w.Code != 400 {
			t.Errorf("a body of %d bytes: status %d: %s", length, w.Code, w.Body)
		}
	}
}
