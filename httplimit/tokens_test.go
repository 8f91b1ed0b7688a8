package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Without a Cost, a project whose tokens are limited is charged a token for four bytes of the body, and
// what its handler commits counts.
func TestTokensWithoutACost(t *testing.T) {
	limiter, err := project.NewWithConfig(project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{"acme": {TokensPerDay: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	commit, limited := -1, true
	handler := httplimit.Middleware(limiter)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		res := httplimit.ReservationFrom(r.Context())
		if (res != nil) != limited {
			t.Errorf("the handler has a reservation: %t; the project's tokens are limited: %t", res != nil, limited)
		}
		if commit >= 0 {
			res.Commit(commit, 0)
		}
	}))
	send := func(project string, bytes, length int, want int, left int64) {
		t.Helper()
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", bytes)))
		r.ContentLength = int64(length)
		r.Header.Set(httplimit.HeaderProjectID, project)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d bytes of %s: status %d, want %d: %s", bytes, project, w.Code, want, w.Body)
		}
		d, err := limiter.Peek(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range d.Windows() {
			if s.Remaining != left {
				t.Errorf("%d bytes of %s: %d tokens are left, want %d", bytes, project, s.Remaining, left)
			}
		}
	}
	send("acme", 197, 197, 200, 50)
	send("acme", 0, 0, 200, 49)
	send("acme", 200, 200, 429, 49)
	commit = 39
	send("acme", 4, 4, 200, 10)
	limited = false
	send("free", 1000, 1000, 200, 0)
	limited = true
	if err := limiter.SetLimit("free", project.Limit{TokensPerMinute: 50}); err != nil {
		t.Fatal(err)
	}
	send("free", 8, 8, 200, 11)
}

func ExampleMiddleware_tokens() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 60, TokensPerDay: 1000})
	defer limiter.Close()

	complete := func(w http.ResponseWriter, r *http.Request) {
		// Call a model, and find that it has used 600 tokens.
		httplimit.ReservationFrom(r.Context()).Commit(400, 200)
	}
	server := httptest.NewServer(httplimit.Middleware(limiter)(http.HandlerFunc(complete)))
	defer server.Close()

	for range 3 {
		r, err := http.NewRequest("POST", server.URL, strings.NewReader(`{"prompt": "hello"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set(httplimit.HeaderProjectID, "ann")
		response, err := server.Client().Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
	// Output:
	// 200
	// 200
	// 429
}
