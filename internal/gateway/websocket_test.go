package gateway

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The handshake of a WebSocket gets a 426, costs nothing and reaches no provider. Once, it was
// forwarded as a plain GET, and OpenAI's Codex CLI tried seven times. A request that offers any
// other protocol is served.
func TestWebSocketsAreRefusedUncharged(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach+"\nprojects: {default: {requests_per_minute: 2}}\n", upstream)
	overTLS := httptest.NewUnstartedServer(r)
	overTLS.EnableHTTP2 = true
	overTLS.StartTLS()
	t.Cleanup(overTLS.Close)
	secure := overTLS.Client()
	oldProto := &http.Client{Transport: &http.Transport{
		TLSClientConfig: secure.Transport.(*http.Transport).TLSClientConfig.Clone(),
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}}
	t.Cleanup(oldProto.CloseIdleConnections)
	for _, c := range []struct {
		client  *http.Client
		url     string
		headers []string
		status  int
		upgrade string
	}{
		{http.DefaultClient, r.url, []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Key", "x", "Sec-WebSocket-Version", "13"}, 426, "HTTP/1.1"},
		{http.DefaultClient, r.url, []string{"Connection", "keep-alive, upgrade", "Upgrade", "h2c, WebSocket"}, 426, "HTTP/1.1"},
		{http.DefaultClient, r.url, []string{"Upgrade", "websocket"}, 426, "HTTP/1.1"},
		{http.DefaultClient, r.url, []string{"Sec-WebSocket-Key", "x"}, 426, "HTTP/1.1"}, // as a proxy forwards it
		{oldProto, overTLS.URL, []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"}, 426, "HTTP/1.1"},
		{secure, overTLS.URL, []string{"Sec-WebSocket-Version", "13"}, 426, ""},
		{http.DefaultClient, r.url, []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA"}, 200, ""},
		{secure, overTLS.URL, nil, 200, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/openai/v1/responses", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		response, err := c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || response.Header.Get("Upgrade") != c.upgrade {
			t.Errorf("%q: %d %v %s", c.headers, response.StatusCode, response.Header, text)
		}
		if c.status == 426 && (!strings.Contains(string(text), "WebSockets") || r.last(t).Outcome != Refused) {
			t.Errorf("%q: %s, recorded as %+v", c.headers, text, r.last(t))
		}
	}
	if sent := len(upstream.requests); sent != 2 { // also the limit of the project
		t.Errorf("%d requests were sent", sent)
	}
}
