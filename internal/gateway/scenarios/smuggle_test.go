package scenarios

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// abused is a gateway with tight bounds.
const abused = `
providers:
  openai: {base_url: MOCK, models: {m: {max_rpd: 1_000_000}}}
  anthropic: {base_url: MOCK}
defaults: {max_wait: 0s}
server: {max_body: 64KiB, max_header: 8KiB, header_timeout: 1s, body_timeout: 1s, idle_timeout: 5s}
`

const (
	good     = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	listing  = "/openai/v1/models"
	smuggled = "GET /openai/v1/models/smuggled HTTP/1.1\r\nHost: gateway\r\n\r\n"
	models   = "/v1/models"
	chats    = "/v1/chat/completions"
)

// post returns a request with headers, and the bytes that follow them.
func post(path, headers, rest string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: gateway\r\n" + headers + "\r\n" + rest
}

func get(target, headers string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: gateway\r\n" + headers + "\r\n"
}

// sized returns a request with a body and its right Content-Length.
func sized(path, headers, body string) string {
	return post(path, fmt.Sprintf("%sContent-Length: %d\r\n", headers, len(body)), body)
}

const chunked = "Transfer-Encoding: chunked\r\n"

// abuse is bytes that a client sends, and the expected result.
type abuse struct {
	name   string
	raw    string
	status []int    // of the answers, in order; 0: the connection is closed
	came   []string // what arrives at the provider
}

const behindChunks = "a length that hides a request behind chunks"

// These stand in place of a status.
const (
	none   = 0 // the connection is closed without an answer
	unread = 1 // none, or 400: the body cannot be read
)

var abuses = []abuse{
	{"a length and chunks", post(chat, chunked+"Content-Length: 5\r\n", chunk(good)+"0\r\n\r\n"), []int{400}, nil},
	{behindChunks, post(chat, chunked+fmt.Sprintf("Content-Length: %d\r\n", len(chunk(good)+"0\r\n\r\n"+smuggled)), chunk(good)+"0\r\n\r\n"+smuggled), []int{400}, nil},
	{"two lengths", post(chat, "Content-Length: 5\r\nContent-Length: 62\r\n", good), []int{400}, nil},
	{"a list of lengths", post(chat, "Content-Length: 5, 62\r\n", good), []int{400}, nil},
	{"a length with a sign", post(chat, "Content-Length: +62\r\n", good), []int{400}, nil},
	{"a negative length", post(chat, "Content-Length: -1\r\n", good), []int{400}, nil},
	{"a length beyond numbers", post(chat, "Content-Length: 99999999999999999999\r\n", good), []int{400}, nil},
	{"a name with a space", post(chat, "Content-Length : 5\r\n", good), []int{400}, nil},
	{"another transfer encoding", post(chat, "Transfer-Encoding: xchunked\r\n", good), []int{501}, nil},
	{"chunked and then another", post(chat, "Transfer-Encoding: chunked, identity\r\n", good), []int{501}, nil},
	{"chunked twice", post(chat, chunked+chunked, chunk(good)+"0\r\n\r\n"), []int{501}, nil},
	{"chunks with a bad size", post(chat, chunked, "zz\r\n"+good+"\r\n0\r\n\r\n"+smuggled), []int{unread}, nil},
	{"chunks with a size beyond numbers", post(chat, chunked, "fffffffffffffffff\r\n"+good), []int{unread}, nil},
	{"a chunk that is longer than its size", post(chat, chunked, "5\r\n"+good+"\r\n0\r\n\r\n"+smuggled), []int{unread}, nil},
	{"chunks with bare line ends", post(chat, chunked, fmt.Sprintf("%x\n%s\n0\n\n", len(good), good)), []int{unread}, nil},
	{"chunks with an extension", post(chat, chunked, fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\n\r\n", len(good), good)), []int{200}, []string{chats}},
	{"chunks with a negative size", post(chat, chunked, "-5\r\n"+good+"\r\n0\r\n\r\n"+smuggled), []int{unread}, nil},
	{"chunks with a long size", post(chat, chunked, strings.Repeat("0", 100)+"5\r\n"+good+"\r\n0\r\n\r\n"+smuggled), []int{unread}, nil},
	{"chunks with a long extension", post(chat, chunked, "5;"+strings.Repeat("a", 20<<10)+"\r\nhello\r\n0\r\n\r\n"+smuggled), []int{unread}, nil},
	{"the same length twice", post(chat, fmt.Sprintf("Content-Length: %[1]d\r\nContent-Length: %[1]d\r\n", len(good)), good), []int{200}, []string{chats}},
	{"a length in hex", post(chat, "Content-Length: 0x3e\r\n", good), []int{400}, nil},
	{"a length in two parts", post(chat, "Content-Length: 6 2\r\n", good), []int{400}, nil},
	{"an empty length", post(chat, "Content-Length: \r\n", good), []int{400}, nil},
	{"chunked behind a strange space", post(chat, "Transfer-Encoding: \x0bchunked\r\n", chunk(good)), []int{400}, nil},
	{"chunked with a space in the name", post(chat, "Transfer-Encoding : chunked\r\n", chunk(good)), []int{400}, nil},
	{"an empty transfer encoding", post(chat, "Transfer-Encoding: \r\n", good), []int{501}, nil},
	{"a line without a name", sized(chat, "nonsense\r\n", good), []int{400}, nil},
	{"a space before the first header", "POST " + chat + " HTTP/1.1\r\n Host: gateway\r\nContent-Length: 0\r\n\r\n", []int{400}, nil},
	{"a header folded with a tab", sized(chat, "X-A: b\r\n\tContent-Length: 0\r\n", good), []int{400}, nil},
	{"a folded header", sized(chat, "X-A: b\r\n Transfer-Encoding: chunked\r\n", good), []int{400}, nil},
	{"bare line ends", strings.ReplaceAll(sized(chat, "", good), "\r\n", "\n"), []int{200}, []string{chats}},
	{"a bare CR in a header", sized(chat, "X-A: b\rTransfer-Encoding: chunked\r\n", good), []int{400}, nil},
	{"a zero byte in a header", sized(chat, "X-A: b\x00c\r\n", good), []int{400}, nil},
	{"a header without a name", sized(chat, ": b\r\n", good), []int{400}, nil},
	{"long headers", get(listing, "X-A: "+strings.Repeat("a", 20<<10)+"\r\n"), []int{431}, nil},
	{"many headers", get(listing, strings.Repeat("X-A: b\r\n", 4<<10)), []int{431}, nil},
	{"a long target", get(listing+"?"+strings.Repeat("a", 20<<10), ""), []int{431}, nil},
	{"slow headers", "GET " + listing + " HTTP/1.1\r\nHost: gate", []int{none}, nil},
	{"a slow body", post(chat, "Content-Length: 100\r\n", `{"model":`), []int{408}, nil},
	{"slow chunks", post(chat, chunked, "5\r\n{\"mod"), []int{408}, nil},
	{"a slow body for nobody", post("/nobody/v1/x", "Content-Length: 100\r\n", "slow"), []int{404}, nil},
	{"a slow body of a file", post("/openai/v1/files", "Content-Length: 100\r\n", "slow"), []int{408}, nil},
	{"a long body", sized(chat, "", good+strings.Repeat(" ", 64<<10)), []int{413}, nil},
	{"a body that says it is long", post(chat, "Content-Length: 10000000000\r\n", good), []int{413}, nil},
	{"chunks without an end", post(chat, chunked, strings.Repeat(chunk(strings.Repeat(" ", 1000)), 100)), []int{413}, nil},
	{"an absolute target", get("http://TRAP/openai/v1/models", ""), []int{200}, []string{models}},
	{"an absolute target without a provider", get("http://TRAP/v1/models", ""), []int{404}, nil},
	{"a target with a user", get("http://openai@TRAP/openai/v1/models", ""), []int{200}, []string{models}},
	{"CONNECT", "CONNECT TRAP HTTP/1.1\r\nHost: TRAP\r\n\r\n", []int{405}, nil},
	{"a target in the path", get("/openai/http://TRAP/v1/models", ""), []int{200}, []string{"/http://TRAP/v1/models"}},
	{"a host in the path", get("/openai//TRAP/v1/models", ""), []int{400}, nil},
	{"a user in the path", get("/openai/@TRAP/v1/models", ""), []int{200}, []string{"/@TRAP/v1/models"}},
	{"the name with a user", get("/openai@TRAP/v1/models", ""), []int{404}, nil},
	{"the name with a port", get("/openai:80@TRAP/v1/models", ""), []int{404}, nil},
	{"no name", get("//TRAP/v1/models", ""), []int{404}, nil},
	{"an encoded name", get("/%6fpenai/v1/models", ""), []int{400}, nil},
	{"an encoded slash behind the name", get("/openai%2f@TRAP/v1/models", ""), []int{400}, nil},
	{"dots", get("/openai/../admin", ""), []int{400}, nil},
	{"dots that are encoded", get("/openai/%2e%2e/admin", ""), []int{400}, nil},
	{"dots with an encoded slash", get("/openai/v1/..%2f..%2fadmin", ""), []int{400}, nil},
	{"one dot", get("/openai/./v1/models", ""), []int{400}, nil},
	{"dots at the end", get("/openai/v1/..", ""), []int{400}, nil},
	{"dots before the name", get("/../openai/v1/models", ""), []int{404}, nil},
	{"line ends in the path", get("/openai/v1/models%0d%0aX-A:%20b", ""), []int{400}, nil},
	{"line ends in the query", get(listing+"?a=%0d%0aX-A:%20b", ""), []int{200}, []string{models + "?a=%0d%0aX-A:%20b"}},
	{"a bad escape", get("/openai/v1/%zz", ""), []int{400}, nil},
	{"a space in the target", get("/openai/v1/models b", ""), []int{400}, nil},
	{"a control character in the target", get("/openai/v1/\x01models", ""), []int{400}, nil},
	{"no host", "GET " + listing + " HTTP/1.1\r\n\r\n", []int{400}, nil},
	{"two hosts", get(listing, "Host: other\r\n"), []int{400}, nil},
	{"a host that is none", "GET " + listing + " HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}, nil},
	{"another host", "GET " + listing + " HTTP/1.1\r\nHost: TRAP\r\nX-Forwarded-Host: TRAP\r\nForwarded: host=TRAP\r\nX-Original-URL: http://TRAP/\r\n\r\n", []int{200}, []string{models}},
	{"an upgrade", get(listing, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), []int{426}, nil},
	{"headers of one hop", get(listing, "Connection: X-B\r\nX-B: smuggled\r\nKeep-Alive: smuggled\r\nProxy-Authorization: smuggled\r\nProxy-Connection: smuggled\r\nTE: smuggled\r\nUpgrade: smuggled\r\n"), []int{200}, []string{models}},
	{"an upgrade to HTTP/2", get(listing, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), []int{200}, []string{models}},
	{"HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{505}, nil},
	{"HTTP/0.9", "GET " + listing + "\r\n\r\n", []int{400}, nil},
	{"HTTP/1.0", "GET " + listing + " HTTP/1.0\r\n\r\n", []int{200}, []string{models}},
	{"chunks of HTTP/1.0", strings.Replace(post(chat, chunked, chunk(good)+"0\r\n\r\n"), "HTTP/1.1", "HTTP/1.0", 1), []int{400}, nil},
	{"who expects to go on", sized(chat, "Expect: 100-continue\r\n", good), []int{100, 200}, []string{chats}},
	{"who expects too much", sized(chat, "Expect: the-moon\r\n", good), []int{417}, nil},
	{"trailers", post(chat, chunked+"Trailer: Authorization, Transfer-Encoding\r\n", chunk(good)+"0\r\nAuthorization: Bearer smuggled\r\n\r\n"), []int{400}, nil},
	{"a trailer", post(chat, chunked+"Trailer: X-A\r\n", chunk(good)+"0\r\nX-A: smuggled\r\n\r\n"), []int{200}, []string{chats}},
	{"a body that nobody wants", sized(listing, "", smuggled), []int{404}, []string{models}},
	{"a body of GET", strings.Replace(sized(listing, "", smuggled), "POST", "GET", 1), []int{200}, []string{models}},
	{"two requests at once", sized(chat, "", good) + get(listing, "Connection: close\r\n"), []int{200, 200}, []string{chats, models}},
	{"two requests, of which the first is refused", sized(chat, "", "nonsense") + get(listing, "Connection: close\r\n"), []int{400, 200}, []string{models}},
	{"two requests, of which the first is too long", sized(chat, "", strings.Repeat(smuggled, 2000)), []int{413}, nil},
	{"a request and noise", get(listing, "") + "noise\r\n\r\n", []int{200, 400}, []string{models}},
	{"a request behind an empty body", post(chat, "Content-Length: 0\r\n", "") + get(listing, "Connection: close\r\n"), []int{400, 200}, []string{chats, models}},
	{"a body that nobody reads", sized("/nobody", "", strings.Repeat(smuggled, 10)), []int{404}, nil},
	{"a long body that nobody reads", sized("/nobody", "", strings.Repeat(smuggled, 20_000)), []int{404}, nil},
	{"a body that was not asked for", sized("/nobody", "Expect: 100-continue\r\n", smuggled), []int{404}, nil},
	{"a method of its own", strings.Replace(get(listing, ""), "GET", "SMUGGLE", 1), []int{405}, nil},
	{"all of the server", "OPTIONS * HTTP/1.1\r\nHost: gateway\r\n\r\n", []int{404}, nil},
	{"noise", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", []int{none}, nil},
}

// victim is a gateway that is abused, and an address to which nothing must connect.
type victim struct {
	*inProcess
	provider *provider
	trap     string
	dial     func(t *testing.T) *caller
}

// Whatever a client sends, the provider gets only well-formed requests to its own paths, and
// never two for one. No other server gets any.
func TestAbuse(t *testing.T) {
	certificate := newCertificate(t)
	for name, more := range map[string]string{"plain": "", "tls": certificate.yaml()} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			g := start(t, abused+more, "memory", p)
			trap, trapped := newTrap(t)
			a := &victim{inProcess: g, provider: p, trap: trap, dial: func(t *testing.T) *caller { return connect(t, g.address()) }}
			if name == "tls" {
				a.dial = func(t *testing.T) *caller { return certificate.connect(t, g.address()) }
			}
			for _, c := range abuses {
				if name == "tls" && c.name == behindChunks {
					continue // net/http ignores such a length, and reads on
				}
				t.Run(c.name, func(t *testing.T) {
					got, came := a.try(t, &c)
					if name == "plain" {
						c.compare(t, got, came)
					} else {
						c.safe(t, came)
					}
				})
			}
			if n := trapped.Load(); n > 0 {
				t.Errorf("%d connections went elsewhere", n)
			}
			if strings.Contains(g.log.String(), "panic") {
				t.Errorf("something has panicked:\n%s", g.log)
			}
		})
	}
}

// compare expects exactly the wanted answers and arrivals.
func (c *abuse) compare(t *testing.T, got []int, came []string) {
	t.Helper()
	if !slices.EqualFunc(got, c.status, func(got, want int) bool { return got == want || want == unread && (got == none || got == 400) }) {
		t.Errorf("it gets %d, want %d", got, c.status)
	}
	if !slices.Equal(came, c.came) {
		t.Errorf("the provider gets %q, want %q", came, c.came)
	}
}

// safe expects that nothing was smuggled. It is for net/http, which serves TLS and accepts more
// than package wire does.
func (c *abuse) safe(t *testing.T, came []string) {
	t.Helper()
	if len(came) > max(len(c.came), 1) || slices.ContainsFunc(came, func(uri string) bool { return strings.Contains(uri, "smuggled") }) {
		t.Errorf("the provider gets %q", came)
	}
}

// try sends the bytes. It returns the answers, and what has arrived at the provider.
func (a *victim) try(t *testing.T, of *abuse) (got []int, came []string) {
	t.Helper()
	before := len(a.provider.arrivals(""))
	c := a.dial(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(testkit.Patience))
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.ReplaceAll(of.raw, "TRAP", a.trap))
		wrote <- err
	}()
	for range of.status {
		got = append(got, c.next(t))
	}
	c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	if more := c.next(t); more != none {
		got = append(got, more)
	}
	c.Close()
	<-wrote // the write may fail, because the gateway does not read on after a refusal
	testkit.Eventually(t, "it has ended", func() bool { return a.Gateway.Active() == 0 })
	for _, each := range a.provider.arrivals("")[before:] {
		came = append(came, strings.ReplaceAll(each.uri, a.trap, "TRAP"))
		each.clean(t)
	}
	return got, came
}

// clean expects that the provider has got no header that is only for the gateway.
func (a *arrival) clean(t *testing.T) {
	t.Helper()
	for name, values := range a.header {
		hop := slices.Contains([]string{"Upgrade", "Connection", "Trailer", "X-Forwarded-Host", "Forwarded", "Http2-Settings"}, name)
		if hop || strings.Contains(strings.Join(values, " "), "smuggled") {
			t.Errorf("the provider gets %s: %q", name, values)
		}
	}
}

// next returns the status of the next answer, or none.
func (c *caller) next(t *testing.T) int {
	t.Helper()
	response, err := http.ReadResponse(c.lines, nil)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("it gets no answer, and the connection stays open")
	}
	if err != nil {
		return none
	}
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// newTrap returns an address to which nothing must connect, and counts connections to it.
func newTrap(t *testing.T) (address string, trapped *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trapped = new(atomic.Int64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			trapped.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String(), trapped
}
