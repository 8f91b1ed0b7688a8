package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requests are what clients send on a connection, and the statuses of the answers.
var requests = []struct{ name, text, statuses string }{
	{"GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"a query", "GET /a%2Fb/%7e?x=1&y=%20#z HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"a whole URL", "GET http://b/c HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"a whole URL, no Host", "GET http://b/c HTTP/1.1\r\n\r\n", "400"},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"CONNECT", "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", "200"},
	{"CONNECT without Host", "CONNECT b:443 HTTP/1.1\r\n\r\n", "200"},
	{"CONNECT with a path", "CONNECT /_rpc HTTP/1.1\r\nHost: b\r\n\r\n", "200"},
	{"lines that end with LF", "GET / HTTP/1.1\nHost: a\n\n", "200"},
	{"spaces around a value", "GET / HTTP/1.1\r\nHost: \t a \t \r\nX:\r\nY: \r\n\r\n", "200"},
	{"values of one name", "GET / HTTP/1.1\r\nHost: a\r\nx-y: 1\r\nX-Y: 2\r\n\r\n", "200"},
	{"bytes above ASCII", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\xff\r\n\r\n", "200"},
	{"a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "200"},
	{"the same length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "200"},
	{"a GET with a body", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "200"},
	{"chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", "200"},
	{"trailers", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 200"},
	{"a Trailer without chunks", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n", "200"},
	{"two at once", "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nHost: a\r\n\r\n", "200 200 200"},
	{"a blank line after a POST", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 200"},
	{"a blank line after a GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 400"},
	{"less than a method after a request", get + "GET", "200"},
	{"close", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"keep-alive", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 200"},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", "200"},
	{"HTTP/1.0, keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n", "200"},
	{"HTTP/1.0 with a length", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", "200"},
	{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "200"},
	{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 200"},
	{"Expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: a\r\n\r\n", "100 200 200"},
	{"Expect without a body", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "200"},
	{"Expect in HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", "200"},
	{"Expect with chunks", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "100 200"},
	{"an empty Expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect:\r\n\r\n", "200"},
	{"an Upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "200"},
	{"a Pragma", "GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", "200"},
	{"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "200"},
	{"a Host with a port", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "200"},

	{"nothing", "", ""},
	{"a blank line", "\r\n\r\n", "400"},
	{"half a line", "GET / HTT", "400"},
	{"half of the headers", "GET / HTTP/1.1\r\nHost: a\r\nX: ", "400"},
	{"a body that ends too soon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", "200"},
	{"chunks that end too soon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", "200"},
	{"chunks that are none", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
	{"a chunk with LF alone", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", "200"},
	{"a chunk that is longer", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", "200"},
	{"a huge chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx", "200"},
	{"a long extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 5000) + "\r\nx\r\n0\r\n\r\n", "200"},
	{"a trailer that goes on", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n z\r\n\r\n", "200"},
	{"a trailer that is none", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX y\r\n\r\n", "200"},
	{"a trailer without end", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y", "200"},
	{"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"a space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"a space behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"},
	{"a relative target", "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"a bad escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"a control character in the target", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"a bad method", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"no method", " / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	{"another protocol", "GET / HTTPS/1.1\r\nHost: a\r\n\r\n", "400"},
	{"TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\n", "400"},
	{"HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", "505"},
	{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
	{"HTTP/3.1 without Host", "GET / HTTP/3.1\r\n\r\n", "505"},
	{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
	{"no Host", "GET / HTTP/1.1\r\n\r\n", "400"},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400"},
	{"a bad Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400"},
	{"a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"},
	{"a space before a name", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"},
	{"a header that goes on", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", "400"},
	{"a header without a name", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", "400"},
	{"a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", "400"},
	{"a name that is no token", "GET / HTTP/1.1\r\nHost: a\r\nX(: y\r\n\r\n", "400"},
	{"a name above ASCII", "GET / HTTP/1.1\r\nHost: a\r\n\xc3\xa9: y\r\n\r\n", "400"},
	{"NUL", "GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "400"},
	{"a bare CR", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "400"},
	{"CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n", "400"},
	{"headers that are too long", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "431"},
	{"a target that is too long", "GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "431"},
	{"lengths that differ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
	{"a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello", "400"},
	{"a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", "400"},
	{"a length with a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", "400"},
	{"an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "400"},
	{"a huge length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "400"},
	{"a length and chunks", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
	{"a bad length and chunks", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
	{"another coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
	{"two codings", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
	{"no coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", "501"},
	{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
	{"a trailer of the frame", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X, content-length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
	{"another expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: coffee\r\nContent-Length: 2\r\n\r\nhi", "417"},
	{"two expectations", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, coffee\r\nContent-Length: 2\r\n\r\nhi", "417"},
}

// stricterRequests are the reasons for which this package refuses requests that net/http's server
// accepts: another reader could read them in another way, or no client sends them.
var stricterRequests = []string{
	"its headers are too long",                                 // it takes 4 KiB more
	"the name of a header is not a token",                      // it takes headers that go on in the next line. RFC 9112, 5.2: a server may refuse that
	"it has both a Transfer-Encoding and a Content-Length",     // RFC 9112, 6.3: ought to be handled as an error
	"it has a Transfer-Encoding, which HTTP/1.0 does not know", // RFC 9112, 6.1: its frame is faulty; it ignores the header
	"it is not HTTP/1",                                         // it hands the preface of HTTP/2 to the handler
	"its Expect is not 100-continue",                           // it accepts 100-continue among several values
}

// seen is what a handler sees of a request.
type seen struct {
	Method, Target, URL, Path, RawPath, Query, Host, Proto string
	Header                                                 http.Header
	Length                                                 int64
	Encoding                                               []string
	Close                                                  bool
	Body                                                   string
	Broken                                                 bool
	why                                                    error
}

// witness is a server whose handler records what it sees.
type witness struct {
	socket string // a file: ports would run out
	mu     sync.Mutex
	seen   []seen
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	h := r.Header.Clone()
	if h.Get("Pragma") == "no-cache" {
		h.Del("Cache-Control") // added by net/http
	}
	s := seen{
		r.Method, r.RequestURI, r.URL.String(), r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Host, r.Proto,
		h, r.ContentLength, slices.Clone(r.TransferEncoding), r.Close || r.ProtoMinor == 0, string(body), err != nil, err,
	}
	w.mu.Lock()
	w.seen = append(w.seen, s)
	w.mu.Unlock()
	io.WriteString(rw, "ok\n")
}

// said is what a server sends back, and what its handler has seen.
type said struct {
	statuses string
	seen     []seen
	text     string
	err      error // the error of the connection
}

var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d\d\d) `)

// exchange sends text, and returns everything that comes back.
func (w *witness) exchange(t testing.TB, text []byte) said {
	c, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.seen = nil // no request is being served
	go func() {
		c.Write(text)
		c.(*net.UnixConn).CloseWrite()
	}()
	answer, err := io.ReadAll(c)
	var statuses []string
	for _, m := range statusLine.FindAllSubmatch(answer, -1) {
		statuses = append(statuses, string(m[1]))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return said{strings.Join(statuses, " "), w.seen, string(answer), err}
}

const headerBytes = 8 << 10

func witnessTheirs(t testing.TB) *witness {
	w := &witness{}
	s := &http.Server{Handler: w, MaxHeaderBytes: headerBytes, DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0)}
	w.socket = listening(t, "unix", filepath.Join(t.TempDir(), "socket"), s.Serve, s.Shutdown)
	return w
}

func witnessOurs(t testing.TB) *witness {
	w := &witness{}
	s := &Server{Handler: w, MaxHeader: headerBytes}
	w.socket = listening(t, "unix", filepath.Join(t.TempDir(), "socket"), s.Serve, s.Shutdown)
	return w
}

// listening lets a server serve until the end of the test.
func listening(t testing.TB, network, address string, serve func(net.Listener) error, end func(context.Context) error) string {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		end(context.Background())
		served.Wait()
	})
	return l.Addr().String()
}

func TestStatuses(t *testing.T) {
	w := witnessOurs(t)
	for _, c := range requests {
		if got := w.exchange(t, []byte(c.text)); got.statuses != c.statuses {
			t.Errorf("%s: %q, %v, %q; want %s", c.name, got.statuses, got.err, got.text, c.statuses)
		}
	}
}

// FuzzStrict lets net/http's server and ours read the same bytes. Theirs must accept every request
// that ours accepts, and read it in the same way.
func FuzzStrict(f *testing.F) {
	theirs, ours := witnessTheirs(f), witnessOurs(f)
	for _, c := range requests {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := alikeSaid(theirs.exchange(t, text), ours.exchange(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// alikeSaid returns how our server's answer differs from net/http's where it must not.
func alikeSaid(want, got said) error {
	for i, s := range got.seen {
		if i >= len(want.seen) {
			return fmt.Errorf("net/http says %s, and we take it: %+v", want.statuses, s)
		}
		if isStricter(s.why) {
			return nil
		}
		if diff := cmp.Diff(want.seen[i], s, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".why" }, cmp.Ignore())); diff != "" {
			return fmt.Errorf("net/http's (-) and ours (+):\n%s", diff)
		}
	}
	switch {
	case want.statuses == got.statuses, want.err != nil:
		return nil
	case len(got.seen) > 0 && got.seen[len(got.seen)-1].Proto == "HTTP/1.0": // ours closes the connection after it
		return nil
	case slices.ContainsFunc(stricterRequests, func(reason string) bool { return strings.HasSuffix(got.text, reason) }):
		return nil
	}
	return fmt.Errorf("net/http says %s (%v), and we %s: %q", want.statuses, want.err, got.statuses, got.text)
}

func isStricter(err error) bool {
	var reason malformed
	return errors.As(err, &reason) && slices.Contains(stricter, reason)
}
