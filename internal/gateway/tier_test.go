package gateway

import (
	"io"
	"net/http"
	"testing"

	"dappco.re/go/core/go-ratelimit/price"
)

// Bedrock's Invoke takes the service tier from a header. A dearer one raises the price, unless the answer names another.
func TestTierInAHeader(t *testing.T) {
	const field = "X-Amzn-Bedrock-Service-Tier"
	for _, c := range []struct {
		asked, told string
		want        price.Amount // of 100 tokens of input and 10 of output
	}{
		{"", "", 200_000},
		{"priority", "", 400_000},
		{"Priority", "priority", 400_000},
		{"priority", "default", 200_000},
		{"flex", "", 200_000},
		{"flex", "flex", 100_000},
		{"", "priority", 400_000},
	} {
		r := newRigBefore(t, `
providers: {bedrock: {kind: bedrock, base_url: MOCK}}
prices: {m: {input: 1, output: 10, priority: 200%, flex: 50%}}
projects: {acme: {dollars: 0.01}}
`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.told != "" {
				w.Header().Set(field, c.told)
			}
			w.Header().Set("X-Amzn-Bedrock-Input-Token-Count", "100")
			w.Header().Set("X-Amzn-Bedrock-Output-Token-Count", "10")
			io.WriteString(w, `{"content":[{"type":"text","text":"hello"}]}`)
		}))
		headers := []string{"X-Project-ID", "acme"}
		if c.asked != "" {
			headers = append(headers, field, c.asked)
		}
		if a := r.post(t, "/bedrock/model/m/invoke", `{"max_tokens":9,"messages":[]}`, headers...); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if got := full - r.dollars(t, "acme"); got != c.want {
			t.Errorf("asked for %q, told %q: %v are charged, want %v", c.asked, c.told, got, c.want)
		}
	}
}
