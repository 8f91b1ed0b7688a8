package gateway

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A large Content-Length holds little memory before the body comes, so other clients are
// served meanwhile.
func TestAnnouncedBodiesHoldLittle(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK, models: {gpt-4o: {}}}}\nserver: {max_body: 1MiB, max_bodies: 1MiB}\n", mockprovider.Config{})
	for range 8 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n{", chat, 1<<20)
	}
	testkit.Eventually(t, "all are read", func() bool { return r.Active() == 8 && r.bodyBytes.Load() > 0 })
	large := strings.Replace(hello, "Hello", strings.Repeat("x", 500<<10), 1)
	if a := r.post(t, chat, large); a.status != 200 {
		t.Errorf("%d %.100s", a.status, a.body)
	}
}

// A large request for a stream reaches the provider whole when the gateway asks for usage,
// although its body is not copied.
func TestLargeBodiesAreSentInPieces(t *testing.T) {
	seen := newSeen()
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK, models: {gpt-4o: {aliases: [best]}}}}\n", seen)
	large := strings.Replace(hello, "{", `{"stream":true,`, 1)
	large = strings.Replace(large, "Hello", strings.Repeat("x", 3<<20), 1)
	for _, body := range []string{large, strings.Replace(large, "gpt-4o", "best", 1)} {
		r.post(t, chat, body)
		got := <-seen.bodies
		without := strings.Replace(got, `"stream_options":{"include_usage":true}`, "", 1)
		if len(without) == len(got) || !strings.Contains(got, strings.Repeat("x", 3<<20)) || !strings.Contains(got, `"gpt-4o"`) || len(got) > len(large)+64 {
			t.Errorf("%d bytes arrived, of %d: %.120s", len(got), len(large), got)
		}
	}
	r.settled(t)
	if n := r.bodyBytes.Load(); n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
}
