package gateway

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// What the provider says of one client's own account does not hold for another's.
func TestAccountsOfClients(t *testing.T) {
	const (
		broke = `{"error":{"message":"check your plan","type":"insufficient_quota","code":"insufficient_quota"}}`
		quick = `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`
	)
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := map[string]string{"Bearer broke": broke, "Bearer quick": quick}[r.Header.Get("Authorization")]
		if said == "" {
			io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
			return
		}
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(429)
		io.WriteString(w, said)
	})
	for _, c := range []struct {
		name   string
		calls  []string
		paused bool
	}{
		{"the only account is too quick", []string{"quick", "quick"}, true},
		{"the only account is empty", []string{"broke", "broke"}, false},
		{"one of two is too quick", []string{"rich", "quick"}, false},
		{"one of two is empty", []string{"rich", "broke"}, false},
		{"an empty one comes first", []string{"broke", "rich"}, false},
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
