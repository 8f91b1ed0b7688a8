package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
)

// BenchmarkCall measures what the gateway takes for a call of 1 KB with all limits on and its answer, without a server
// for the client: the provider is a connection on loopback that answers at once.
func BenchmarkCall(b *testing.B) {
	b.Setenv("BENCHMARK_PROVIDER_KEY", "sk-0123456789abcdef")
	provider := instantProvider(b, chatAnswer)
	g, err := New(gatewaytest.Config(b, allLimits, "http://"+provider), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	secret, _, err := g.Keys().Create(b.Context(), "search", "benchmark", 0)
	if err != nil {
		b.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":1024,"messages":[{"role":"user","content":%q}]}`, oneKilobyte)
	b.ReportAllocs()
	w := &bareWriter{header: http.Header{}}
	for b.Loop() {
		clear(w.header) // as the server does, which uses the map again
		g.ServeHTTP(w, (&http.Request{
			Method: http.MethodPost, URL: &url.URL{Path: chat}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{
				"Authorization": {"Bearer " + secret}, "Content-Type": {"application/json"},
				"Accept": {"application/json"}, "User-Agent": {"OpenAI/Python 1.54.0"},
			},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:1",
		}).WithContext(b.Context()))
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}

// allLimits has all limits on, and all of them too large to be reached.
const allLimits = `
keys: required
providers:
  openai: {base_url: MOCK, key: {env: BENCHMARK_PROVIDER_KEY}, models: {gpt-4o: {max_rpm: 100_000_000, max_tpm: 100_000_000_000, max_rpd: 10_000_000_000}}}
projects:
  search:
    requests_per_minute: 100_000_000
    requests_per_hour: 1_000_000_000
    requests_per_day: 10_000_000_000
    tokens_per_minute: 100_000_000_000
    tokens_per_hour: 1_000_000_000_000
    tokens_per_day: 10_000_000_000_000
log: {level: "off"}
`

var oneKilobyte = strings.Repeat("It was the best of times, it was the worst of times. ", 19)

// chatAnswer is an answer as OpenAI sends it.
var chatAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nOpenai-Processing-Ms: 412\r\nX-Request-Id: req_5f0d1a3c9b7e4826\r\n" +
	"X-Ratelimit-Limit-Requests: 100000000\r\nX-Ratelimit-Remaining-Requests: 99999999\r\nX-Ratelimit-Reset-Requests: 1ms\r\n" +
	"X-Ratelimit-Limit-Tokens: 100000000000\r\nX-Ratelimit-Remaining-Tokens: 99999999000\r\nX-Ratelimit-Reset-Tokens: 6ms\r\n"

// instantProvider answers every request on its connections at once, and returns its address.
func instantProvider(b *testing.B, head string) string {
	body := fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":190,"total_tokens":390}}`, oneKilobyte)
	answer := fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerCalls(c, answer)
		}
	}()
	return l.Addr().String()
}

// answerCalls answers every call on a connection. The body of a call ends with its list of messages.
func answerCalls(c net.Conn, answer []byte) {
	defer c.Close()
	room := make([]byte, 16<<10)
	for n := 0; ; {
		more, err := c.Read(room[n:])
		if err != nil {
			return
		}
		if n += more; bytes.HasSuffix(room[:n], []byte("]}")) {
			c.Write(answer)
			n = 0
		}
	}
}

// bareWriter keeps the status of an answer.
type bareWriter struct {
	header http.Header
	status int
}

func (w *bareWriter) Header() http.Header              { return w.header }
func (w *bareWriter) WriteHeader(status int)           { w.status = status }
func (w *bareWriter) Write(p []byte) (int, error)      { return len(p), nil }
func (w *bareWriter) FlushError() error                { return nil }
func (w *bareWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *bareWriter) SetWriteDeadline(time.Time) error { return nil }
