package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/mockprovider"
)

// A deployment that fails has most left. Calls go to another all the same, at once where
// they may be tried again, and after a failure where they may not.
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
				continue // which says nothing of its health
			}
			if failed != want {
				t.Errorf("%s with %s retries: %d failed", dead, retries, failed)
			}
			if s := r.Models().Stats("gpt-4o@a"); s.Concurrent != 0 {
				t.Errorf("%s with %s retries: a place is lost: %+v", dead, retries, s)
			}
		}
	}
}

// breaking breaks what comes to some paths.
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

// A key is sent to its own deployment alone, and the client's own to those without one.
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

// A call is tried again where it was not tried yet, even if nothing else tells the two
// apart.
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
