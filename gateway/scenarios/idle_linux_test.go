package scenarios

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Idle connections of one address, more than the process may have descriptors, lock out neither the clients of other
// addresses nor the admin API.
func TestIdleConnectionsLockOutNobody(t *testing.T) {
	provider := newProvider(t)
	g := launchWith(t, []string{"sh", "-c", `ulimit -n 300; exec "$0" "$@"`}, written(t, "server: {header_timeout: 10m, idle_timeout: 10m}\nproviders: {openai: {base_url: MOCK}}\n", provider), "")
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for _, url := range []string{g.url, g.admin} {
		for range 320 {
			c, err := dialer.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, url := range []string{g.url + "/openai/v1/models", g.admin + "/v1/state"} {
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("%s: %d", url, response.StatusCode)
		}
	}
}
