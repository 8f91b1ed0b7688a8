package ratelimit_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// CountTokens asks Gemini about the model and the text, with the key.
func TestCountTokens(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = transportFunc(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if got := r.URL.String(); got != "https://generativelanguage.googleapis.com/v1beta/models/some-model:countTokens" ||
			r.Header.Get("X-Goog-Api-Key") != "secret" || !strings.Contains(string(body), `"some text"`) || err != nil {
			t.Errorf("it asks %s with the key %q: %s, %v", got, r.Header.Get("X-Goog-Api-Key"), body, err)
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"totalTokens": 31}`))}, nil
	})
	if n, err := ratelimit.CountTokens(t.Context(), "secret", "some-model", "some text"); n != 31 || err != nil {
		t.Errorf("counted %d, %v; want 31", n, err)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
