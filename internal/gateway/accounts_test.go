package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What the provider says about one client's own account does not apply to other clients.
func TestAccountsOfClients(t *testing.T) {
	const (
		broke = `{"error":{"message":"check your plan","type":"insufficient_quota","code":"insufficient_quota"}}`
		quick = `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`
	)
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "20")
		switch strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") {
		case "rich":
			io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
		case "broke":
			w.WriteHeader(429)
			io.WriteString(w, broke)
		case "quick":
			w.WriteHeader(429)
			io.WriteString(w, quick)
		case "overloaded":
			w.WriteHeader(529)
		default:
			w.WriteHeader(401)
		}
	})
	for _, c := range []struct {
		name   string
		calls  []string
		paused bool
	}{
		{"the only account is too quick", []string{"quick"}, true},
		{"the only account is empty", []string{"broke"}, false},
		{"one of two is too quick", []string{"rich", "quick"}, false},
		{"one of two is empty", []string{"rich", "broke"}, false},
		{"an empty one comes first", []string{"broke", "rich"}, false},
		{"the provider does not know another", []string{"rich", "unknown", "rich", "rich"}, false},
		{"who is too quick has company that is not known", []string{"unknown", "quick"}, true},
		{"who is too quick has company without a key", []string{"", "quick"}, true},
		{"a provider is overloaded, of two accounts", []string{"rich", "overloaded"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\ndefaults: {max_wait: 0s}\n", upstream)
			for _, account := range c.calls {
				r.post(t, chat, hello, "Authorization", "Bearer "+account)
			}
			if left := r.Models().Paused("gpt-4o"); (left > 0) != c.paused || left > time.Minute {
				t.Errorf("the model is paused for %v", left)
			}
		})
	}
}

// Several accounts count as one again when only one was used for long. A client that sends
// its key twice has one account.
func TestSeveralAccountsBecomeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a accounts
		a.observe(nil)
		a.observe([]string{"a"})
		a.observe([]string{"a", "a"})
		if a.several() {
			t.Error("one is several")
		}
		a.observe([]string{"b"})
		for range 9 {
			time.Sleep(time.Minute)
			a.observe([]string{"b"})
			if !a.several() {
				t.Error("the other may be used again")
			}
		}
		time.Sleep(time.Minute)
		if a.several() {
			t.Error("the other is not used any more")
		}
	})
}
