package scenarios

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
	answers(t, g.url+"/openai/v1/models", g.admin+"/v1/state")
}

// Many streams on few connections of HTTP/2 use up no descriptors either, though each has a connection to the provider.
// Streams that are too many get a 503.
func TestStreamsLockOutNobody(t *testing.T) {
	provider := newProvider(t)
	provider.block()
	c := newCertificate(t)
	g := launchWith(t, []string{"sh", "-c", `ulimit -n 300; exec "$0" "$@"`}, written(t, c.yaml()+"providers: {openai: {base_url: MOCK}}\n", provider), "")
	const connections, streams = 3, 200
	var refused, others atomic.Int32
	ctx, end := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer end()
	for range connections {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.trust}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		send := func(method, path, body string) int {
			req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return 0
			}
			response, err := client.Do(req)
			if err != nil {
				return 0 // at the end of the test
			}
			response.Body.Close()
			return response.StatusCode
		}
		if status := send("GET", "/healthz", ""); status != 200 { // from now on there is a connection
			t.Fatal(status)
		}
		for range streams {
			calls.Go(func() {
				switch send("POST", "/openai/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`) {
				case 503:
					refused.Add(1)
				default:
					others.Add(1)
				}
			})
		}
	}
	testkit.Eventually(t, "every stream waits for the provider or is refused", func() bool {
		inside, _ := provider.busy()
		return inside+int(refused.Load()+others.Load()) == connections*streams
	})
	if refused.Load() == 0 || others.Load() > 0 {
		t.Errorf("%d are refused, and %d get another answer", refused.Load(), others.Load())
	}
	answers(t, g.admin+"/v1/state")
}

// answers checks that there is an answer at each of these addresses.
func answers(t *testing.T, urls ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, url := range urls {
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
