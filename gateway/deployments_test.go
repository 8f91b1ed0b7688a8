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
		for _, dead := range []string{"http://127.0.0.1:1", "MOCK/broken"} {
			r := newRigBefore(t, strings.NewReplacer("DEAD", dead, "RETRIES", retries).Replace(`
providers:
  openai:
    retries: RETRIES
    deployments:
      a: {base_url: "DEAD"}
      b: {base_url: MOCK}
    models: {gpt-4o: {max_rpm: 100}}
`), breaking{mockprovider.New(mockprovider.Config{})})
			failed := 0
			for range 10 {
				if a := r.post(t, chat, hello); a.status != 200 {
					failed++
				}
			}
			if want := 1 - len(strings.Trim(retries, "0")); failed != want {
				t.Errorf("%s with %s retries: %d failed", dead, retries, failed)
			}
		}
	}
}

// breaking breaks what comes to /broken.
type breaking struct{ http.Handler }

func (b breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/broken") {
		http.Error(w, "broken", http.StatusInternalServerError)
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
