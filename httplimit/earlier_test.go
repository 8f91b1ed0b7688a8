package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A program for the rate limiter of projects that docs/migration.md maps to ours does what it did.
func TestEarlierProjects(t *testing.T) {
	if l := *project.DefaultLimit; l.RequestsPerMinute != 60 || l.RequestsPerHour != 1000 || l.RequestsPerDay != 10000 {
		t.Errorf("the default limit is %+v", l)
	}
	limiter := project.New(nil)
	defer limiter.Close()
	for range 60 {
		if allowed, err := limiter.Allow(context.Background(), "project-123"); err != nil || !allowed {
			t.Fatal(allowed, err)
		}
	}
	allowed, err := limiter.Allow(context.Background(), "project-123")
	if allowed || err == nil || err.Error() != "ratelimit: rate limit exceeded: 60 requests/minute" {
		t.Errorf("the 61st: %t, %v", allowed, err)
	}
	handler := httplimit.Middleware(limiter)(http.NotFoundHandler())
	for id, want := range map[string]int{"": 400, "project-123": 429, "project-124": 404} {
		r := httptest.NewRequest("GET", "/", nil)
		if id != "" {
			r.Header.Set("X-Project-ID", id)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", id, w.Code, want)
		}
	}
}
