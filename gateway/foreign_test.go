package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// A page of another site cannot spend the gateway's key, neither directly nor by a name
// of that site that leads to this machine. Programs, and pages of this one, can.
func TestForeignPages(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	upstream := newSeen()
	keyed := newRigBefore(t, `
providers:
  openai: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}
  local: {base_url: MOCK}
`, upstream)
	for _, c := range []struct {
		method, path, host string
		headers            []string
		status             int
	}{
		{"POST", chat, "", nil, 200},
		{"POST", chat, "localhost:8080", nil, 200},
		{"POST", chat, "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", chat, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", chat, "", []string{"Origin", "https://evil.example"}, 403},
		{"OPTIONS", chat, "", []string{"Origin", "https://evil.example"}, 403},
		{"POST", chat, "evil.example", nil, 403},
		{"GET", "/openai/v1/models", "evil.example", nil, 403},
		{"POST", "/local/api/chat", "evil.example", nil, 200}, // which has no key to spend
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, keyed.url+c.path, strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s %s at %q with %q: %d", c.method, c.path, c.host, c.headers, response.StatusCode)
		}
	}
}
