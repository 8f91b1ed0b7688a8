package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A failing deployment has the most left of its quota. Calls go to another all the same: at
// once where retries are allowed, and after one failure where they are not.
func TestDeadDeployment(t *testing.T) {
	for _, retries := range []string{"0", "1"} {
		for _, dead := range []string{"http://127.0.0.1:1", "MOCK/broken", "MOCK/denied", "MOCK/conflict"} {
			r := newRigBefore(t, strings.NewReplacer("DEAD", dead, "RETRIES", retries).Replace(`
providers:
  openai:
    retries: RETRIES
    deployments:
      a: {base_url: "DEAD"}
      b: {base_url: MOCK}
    models: {gpt-4o: {max_rpm: 100, max_concurrent: 5}}
`), breaking{mockprovider.New(mockprovider.Config{})})
			failed := 0
			for range 10 {
				if a := r.post(t, chat, hello); a.status != 200 {
					failed++
				}
			}
			want := 1 - len(strings.Trim(retries, "0"))
			if dead == "MOCK/conflict" && retries == "0" {
				continue // a client's mistake does not concern the deployment's health
			}
			if failed != want {
				t.Errorf("%s with %s retries: %d failed", dead, retries, failed)
			}
			if s := r.Models().Stats("gpt-4o@a"); s.Concurrent != 0 {
				t.Errorf("%s with %s retries: a concurrency slot is lost: %+v", dead, retries, s)
			}
		}
	}
}

// A client that calls a model which a deployment forbids does not keep calls of other models
// away from the deployment.
func TestAForbiddenModelDoesNotTakeADeploymentAway(t *testing.T) {
	mock := mockprovider.New(mockprovider.Config{})
	r := newRigBefore(t, `
providers:
  openai:
    deployments:
      a: {base_url: MOCK/a}
      b: {base_url: MOCK}
    models: {gpt-4o: {max_rpm: 3}, secret: {max_rpm: 100}}
defaults: {max_wait: 0s}
`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if path, ok := strings.CutPrefix(r.URL.Path, "/a"); ok {
			if strings.Contains(string(body), "secret") {
				http.Error(w, "not for you", http.StatusForbidden)
				return
			}
			r.URL.Path = path
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mock.ServeHTTP(w, r)
	}))
	forbidden := strings.Replace(hello, "gpt-4o", "secret", 1)
	for i, want := range []int{403, 200, 200} { // the first goes to a, the others to b
		if a := r.post(t, chat, forbidden); a.status != want {
			t.Errorf("call %d of the forbidden model: %d", i, a.status)
		}
	}
	for i := range 6 {
		if a := r.post(t, chat, hello); a.status != 200 {
			t.Errorf("call %d: %d %s", i, a.status, a.body)
		}
	}
}

// breaking is a server that closes the connection for some paths.
type breaking struct{ http.Handler }

func (b breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	statuses := map[string]int{"broken": 500, "denied": 401, "conflict": 409}
	first, _, _ := strings.Cut(r.URL.Path[1:], "/")
	if status := statuses[first]; status != 0 {
		http.Error(w, first, status)
		return
	}
	b.Handler.ServeHTTP(w, r)
}

// A key is sent only to its own deployment. Deployments without a key get the client's own.
func TestKeysOfDeployments(t *testing.T) {
	t.Setenv("KEY_A", "sk-a")
	var sent atomic.Pointer[[]string]
	sent.Store(&[]string{})
	r := newRigBefore(t, `
providers:
  openai:
    retries: 3
    deployments:
      a: {base_url: MOCK/a, key: {env: KEY_A}}
      b: {base_url: MOCK/b}
`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := append(*sent.Load(), r.URL.Path[:2]+" "+r.Header.Get("Authorization"))
		sent.Store(&list)
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	r.post(t, chat, hello, "Authorization", "Bearer mine")
	r.settled(t)
	for _, got := range *sent.Load() {
		if got != "/a Bearer sk-a" && got != "/b Bearer mine" {
			t.Errorf("%s", got)
		}
	}
	if len(*sent.Load()) != 4 {
		t.Errorf("sent %q", *sent.Load())
	}
}

// A retry goes to a deployment that was not tried yet, even if all are alike otherwise.
func TestRetriesGoElsewhere(t *testing.T) {
	r := newRigBefore(t, `
providers:
  vllm:
    retries: 1
    deployments:
      a: {base_url: MOCK/conflict}
      b: {base_url: MOCK}
`, breaking{mockprovider.New(mockprovider.Config{})})
	if a := r.post(t, "/vllm/v1/chat/completions", hello); a.status != 200 || r.last(t).Deployment != "b" {
		t.Errorf("%d %s from %q", a.status, a.body, r.last(t).Deployment)
	}
}
