package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A page of another site cannot use a gateway that needs no virtual key, whether the provider's
// key is the gateway's or the client's: neither directly, nor by a name of that site that
// resolves to the gateway (DNS rebinding). Programs, pages of the gateway's own origin, and
// clients that use one of server.hosts can.
func TestForeignPages(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	const providers = "providers: {openai: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}, local: {base_url: MOCK}}\nserver: {hosts: [gateway.example.com, 'two.example.com:81']}\n"
	off, required := newRigBefore(t, providers, newSeen()), newRigBefore(t, providers+"keys: required\n", newSeen())
	key, _ := required.newKey(t, "search", "")
	const local = "/local/api/chat"
	for _, c := range []struct {
		r                  *rig
		method, path, host string
		headers            []string
		status             int
	}{
		{off, "POST", chat, "", nil, 200},
		{off, "POST", chat, "localhost:8080", nil, 200},
		{off, "POST", local, "LOCALHOST.", nil, 200},
		{off, "POST", local, "dev.localhost:1", nil, 200},
		{off, "POST", local, "host.docker.internal:8080", nil, 200},
		{off, "POST", local, "[::1]:8080", nil, 200},
		{off, "POST", local, "10.1.2.3", nil, 200},
		{off, "POST", local, "ratelimit:8080", nil, 200}, // a container's name
		{off, "POST", local, "Gateway.Example.com:8080", nil, 200},
		{off, "POST", local, "two.example.com:81", nil, 200},
		{off, "POST", local, "two.example.com:82", nil, 403},
		{off, "POST", chat, "evil.example", nil, 403},
		{off, "POST", local, "evil.example", nil, 403},
		{off, "POST", local, "127.0.0.1.evil.example:8080", nil, 403},
		{off, "POST", local, "gateway.example.com.evil.example", nil, 403},
		{off, "POST", local, "localhost.evil.example", nil, 403},
		{off, "POST", local, "ai.", nil, 403}, // a name with a dot, at the root of the DNS
		{off, "GET", "/openai/v1/models", "evil.example", nil, 403},
		{off, "GET", "/nobody", "evil.example", nil, 403}, // the refusal has no names of providers
		{off, "POST", local, "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{off, "POST", local, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{off, "GET", local, "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{off, "POST", chat, "", []string{"Origin", "https://evil.example"}, 403},
		{off, "POST", local, "", []string{"Origin", "null"}, 403},
		{off, "OPTIONS", chat, "", []string{"Origin", "https://evil.example"}, 403},
		{required, "POST", chat, "any.example.com", []string{"Authorization", "Bearer " + key, "Origin", "https://page.example"}, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, c.r.url+c.path, strings.NewReader(hello))
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
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s %s at %q with %q: %d", c.method, c.path, c.host, c.headers, response.StatusCode)
		}
		if c.status == 403 && (strings.Contains(string(text), "local/") || strings.Contains(string(text), "model") || c.host != "" && !strings.Contains(string(text), "server.hosts")) {
			t.Errorf("%s at %q: %s", c.path, c.host, text)
		}
	}
}
