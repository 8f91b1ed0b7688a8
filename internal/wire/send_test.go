package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// written returns what the transport writes for a request of known length, with its headers in
// order.
func written(t *testing.T, req *http.Request) string {
	t.Helper()
	got := make(chan string, 1)
	server := startRaw(t, func(c net.Conn) {
		var text bytes.Buffer
		readRequest(bufio.NewReader(io.TeeReader(c, &text)))
		io.WriteString(c, hello)
		got <- text.String()
	})
	target := *req.URL
	target.Host = server.url[len("http://"):]
	req.Host, req.URL = req.URL.Host, &target
	if _, err := send(newTransport(t, nil), req); err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(<-got, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return strings.Join(append(lines, "", body), "\n")
}

func TestWritten(t *testing.T) {
	stream := func(text string) io.ReadCloser { return io.NopCloser(iotest.OneByteReader(strings.NewReader(text))) }
	whole := func(text string) io.ReadCloser { return &Pieces{[]byte(text)} }
	for _, c := range []struct {
		name   string
		req    http.Request
		target string
		want   []string
	}{
		{"the least", http.Request{}, "http://a", []string{"GET / HTTP/1.1", "Host: a", "", ""}},
		{"a path and a query", http.Request{}, "http://a:80/b%2fc%20d?e=f%20g", []string{"GET /b%2fc%20d?e=f%20g HTTP/1.1", "Host: a:80", "", ""}},
		{"a zone", http.Request{}, "http://[fe80::1%25eth0]:80/", []string{"GET / HTTP/1.1", "Host: [fe80::1]:80", "", ""}},
		{"headers", http.Request{Header: http.Header{"A": {"1", "2"}, "b": {""}}}, "http://a", []string{"GET / HTTP/1.1", "A: 1", "A: 2", "Host: a", "b: ", "", ""}},
		{"headers that are ours", http.Request{Header: http.Header{
			"Connection": {"x"}, "Keep-Alive": {"x"}, "Transfer-Encoding": {"chunked"}, "transfer-encoding": {"chunked"}, "Content-Length": {"7"},
			"content-length": {"7"}, "CONTENT-LENGTH": {"7"}, "Trailer": {"x"}, "Upgrade": {"x"}, "Te": {"x"}, "Host": {"x"}, "host": {"x"},
			"Proxy-Authorization": {"x"}, "proxy-connection": {"x"}, "Proxy-X": {"x"}, "Proxy": {"kept"},
		}}, "http://a", []string{"GET / HTTP/1.1", "Host: a", "Proxy: kept", "", ""}},
		{"close", http.Request{Close: true}, "http://a", []string{"GET / HTTP/1.1", "Connection: close", "Host: a", "", ""}},
		{"POST of nothing", http.Request{Method: "POST"}, "http://a", []string{"POST / HTTP/1.1", "Content-Length: 0", "Host: a", "", ""}},
		{"PUT of no body", http.Request{Method: "PUT", Body: http.NoBody}, "http://a", []string{"PUT / HTTP/1.1", "Content-Length: 0", "Host: a", "", ""}},
		{"DELETE", http.Request{Method: "DELETE"}, "http://a", []string{"DELETE / HTTP/1.1", "Host: a", "", ""}},
		{"bytes", http.Request{Method: "POST", Body: whole("text")}, "http://a", []string{"POST / HTTP/1.1", "Content-Length: 4", "Host: a", "", "text"}},
		{"no bytes", http.Request{Method: "POST", Body: whole("")}, "http://a", []string{"POST / HTTP/1.1", "Content-Length: 0", "Host: a", "", ""}},
		{"a stream of a length", http.Request{Method: "POST", ContentLength: 4, Body: stream("text")}, "http://a", []string{"POST / HTTP/1.1", "Content-Length: 4", "Host: a", "", "text"}},
		{"a stream that is longer than it says", http.Request{Method: "POST", ContentLength: 2, Body: stream("text")}, "http://a", []string{"POST / HTTP/1.1", "Content-Length: 2", "Host: a", "", "te"}},
		{"a stream", http.Request{Method: "POST", Body: stream("hi")}, "http://a", []string{"POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"}},
		{"a stream of nothing", http.Request{Method: "POST", ContentLength: -1, Body: stream("")}, "http://a", []string{"POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "0\r\n\r\n"}},
		{"a large chunk", http.Request{Method: "POST", Body: io.NopCloser(strings.NewReader(strings.Repeat("x", maxCopied+1)))}, "http://a",
			[]string{"POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "4000\r\n" + strings.Repeat("x", maxCopied) + "\r\n1\r\nx\r\n0\r\n\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := url.Parse(c.target)
			if err != nil {
				t.Fatal(err)
			}
			c.req.URL = target
			if got, want := written(t, &c.req), strings.Join(c.want, "\n"); got != want {
				t.Errorf("%q\nwant\n%q", got, want)
			}
		})
	}
}

// These requests would be read as other ones, or not at all. Nothing is sent, their bodies are
// closed, and no error contains a secret.
func TestRefused(t *testing.T) {
	server := startRaw(t, always(hello, false))
	host := server.url[len("http://"):]
	four := Pieces{[]byte("text")}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"a method with a space", func(r *http.Request) { r.Method = "GET /secret HTTP/1.1\r\nA: b" }},
		{"CONNECT", func(r *http.Request) { r.Method = "CONNECT" }},
		{"no URL", func(r *http.Request) { r.URL = nil }},
		{"another scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }},
		{"no host", func(r *http.Request) { r.URL.Host = "" }},
		{"a host with a space", func(r *http.Request) { r.URL.Host += " secret" }},
		{"a Host with a line's end", func(r *http.Request) { r.Host = "a\r\nX: secret" }},
		{"a Host that is no ASCII", func(r *http.Request) { r.Host = "bücher.example" }},
		{"an opaque URL", func(r *http.Request) { r.URL.Opaque = "//secret HTTP/1.1\r\nA: b" }},
		{"a relative path", func(r *http.Request) { r.URL.Path = "secret" }},
		{"a path that begins with an escaped slash", func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/@secret", "%2f@secret" }},
		{"a query with a space", func(r *http.Request) { r.URL.RawQuery = "key=secret HTTP/1.1" }},
		{"a query with a line's end", func(r *http.Request) { r.URL.RawQuery = "key=secret\r\nA: b" }},
		{"a header's name with a colon", func(r *http.Request) { r.Header["A: b\r\nC"] = []string{"secret"} }},
		{"no header's name", func(r *http.Request) { r.Header[""] = []string{"secret"} }},
		{"a header with a line's end", func(r *http.Request) { r.Header["A"] = []string{"secret\r\nB: c"} }},
		{"a header with a bare line feed", func(r *http.Request) { r.Header["A"] = []string{"fine", "secret\nB: c"} }},
		{"a header with a NUL", func(r *http.Request) { r.Header["A"] = []string{"secret\x00"} }},
		{"a header that is ours, with a line's end", func(r *http.Request) { r.Header["Connection"] = []string{"secret\r\nB: c"} }},
		{"a length that is not the body's", func(r *http.Request) { r.Body, r.ContentLength = &four, 5 }},
		{"a length without a body", func(r *http.Request) { r.Body, r.ContentLength = nil, 5 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := newRequest(t, "POST", server.url, "")
			body := &watched{Reader: strings.NewReader("text")}
			req.Body = body
			c.change(req)
			_, err := send(newTransport(t, nil), req)
			var fault *Error
			if !errors.As(err, &fault) || fault.Sent || !strings.HasPrefix(err.Error(), "ratelimit: ") {
				t.Fatalf("%v", err)
			}
			if text := strings.ReplaceAll(err.Error(), fault.Host, ""); strings.Contains(text, "secret") && c.name != "a method with a space" {
				t.Error(text)
			}
			if req.Body == body && body.closed != 1 {
				t.Errorf("the body is closed %d times", body.closed)
			}
		})
	}
	if server.accepted.Load() != 0 {
		t.Errorf("%d connections to %s", server.accepted.Load(), host)
	}
}

// watched counts how often it is closed.
type watched struct {
	io.Reader
	closed int
}

func (w *watched) Close() error { w.closed++; return nil }

// A request's body breaks off: the caller learns why, and the server does not see a complete
// request.
func TestBodyFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		length int64
		body   io.Reader
		want   string
	}{
		{"an error", -1, io.MultiReader(strings.NewReader("te"), iotest.ErrReader(errors.New("client has left"))), "the request's body: client has left"},
		{"an error before the length", 4, io.MultiReader(strings.NewReader("te"), iotest.ErrReader(errors.New("client has left"))), "the request's body: client has left"},
		{"less than its length", 4, strings.NewReader("te"), "the request's body: it ends 2 bytes before its ContentLength of 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := make(chan error, 1)
			server := startRaw(t, func(conn net.Conn) { seen <- readRequest(bufio.NewReader(conn)) })
			req := newRequest(t, "POST", server.url, "")
			body := &watched{Reader: c.body}
			req.Body, req.ContentLength = body, c.length
			_, err := send(newTransport(t, nil), req)
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if err := <-seen; err == nil {
				t.Error("the server has got all of it")
			}
			if body.closed != 1 {
				t.Errorf("closed %d times", body.closed)
			}
		})
	}
}

// A server refuses a body without reading it, and closes the connection.
func TestEarlyAnswer(t *testing.T) {
	const refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"
	for name, body := range map[string]func() io.ReadCloser{
		"whole":    func() io.ReadCloser { return &Pieces{make([]byte, big)} },
		"streamed": func() io.ReadCloser { return io.NopCloser(io.LimitReader(zeros{}, big)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := startRaw(t, func(c net.Conn) {
				c.Read(make([]byte, 100))
				io.WriteString(c, refusal)
				c.(*net.TCPConn).CloseWrite()
				io.ReadFull(c, make([]byte, 1<<20)) // less than there is: what is left resets the connection
			})
			transport := newTransport(t, nil)
			for range 3 {
				req := newRequest(t, "POST", server.url, "")
				req.Body = body()
				must(t, transport, req, "413", "no!")
			}
			if n := server.accepted.Load(); n != 3 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// A server answers before it has read the whole request, and reads on.
func TestAnswerBeforeEnd(t *testing.T) {
	answered, total := make(chan struct{}), make(chan int64, 1)
	server := startRaw(t, func(c net.Conn) {
		req, _ := http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, ok+"Content-Length: 4\r\n\r\nhe")
		n, _ := io.Copy(io.Discard, req.Body)
		total <- n
		io.WriteString(c, "re")
	})
	r, w := io.Pipe()
	req := newRequest(t, "POST", server.url, "")
	req.Body = r
	go func() {
		<-answered
		w.Write(make([]byte, 1<<20))
		w.Close()
	}()
	response, err := newTransport(t, nil).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	close(answered)
	text, err := io.ReadAll(response.Body)
	if string(text) != "here" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if n := <-total; n != 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

// A server answers without reading the whole request: the rest of the request must not become the
// beginning of the next.
func TestAnswerInsteadOfEnd(t *testing.T) {
	server := startRaw(t, func(c net.Conn) {
		http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, hello)
		io.Copy(io.Discard, c)
	})
	transport := newTransport(t, nil)
	for range 2 {
		req := newRequest(t, "POST", server.url, "")
		req.Body = stuck(t)
		must(t, transport, req, "200", "hi")
	}
	if n := server.accepted.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// The same Pieces are sent twice, and then read.
func TestPiecesAgain(t *testing.T) {
	server := startRaw(t, always(hello, false))
	transport := newTransport(t, nil)
	req := newRequest(t, "POST", server.url, "text")
	must(t, transport, req, "200", "hi")
	must(t, transport, req, "200", "hi")
	if err := iotest.TestReader(req.Body, []byte("text")); err != nil {
		t.Error(err)
	}
}

// A connection that was used before fails before anything is written: another one is used. A new
// connection is not tried again.
func TestUnused(t *testing.T) {
	server := startRaw(t, always(hello, false))
	transport := newTransport(t, nil)
	must(t, transport, newRequest(t, "GET", server.url, ""), "200", "hi")
	for _, list := range transport.idle {
		list[0].stream = deaf{}
	}
	must(t, transport, newRequest(t, "POST", server.url, "text"), "200", "hi")
	if n := server.accepted.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
	_, err := send(transport, newRequest(t, "GET", "http://127.0.0.1:1", ""))
	var fault *Error
	if !errors.As(err, &fault) || fault.Sent {
		t.Errorf("%v", err)
	}
}

// deaf accepts nothing.
type deaf struct{}

func (deaf) Read([]byte) (int, error)  { return 0, io.EOF }
func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A connection accepts only a part of the headers: the request is not sent again, and its body is
// closed.
func TestHeadCutOff(t *testing.T) {
	client, server := net.Pipe()
	server.Close()
	c := newTransport(t, nil).newConn(origin{"http", "host"}, &cutOff{Conn: client})
	c.used = true
	req := newRequest(t, "POST", "http://host", "")
	body := &watched{Reader: strings.NewReader("text")}
	req.Body = body
	_, sent, err := c.exchange(req)
	if !sent || err != io.ErrClosedPipe || body.closed != 1 {
		t.Errorf("%v, %v; closed %d times", sent, err, body.closed)
	}
}

// A server answers although it has received only a part of the request.
func TestCutOffIsNotKept(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	go io.WriteString(server, hello)
	c := newTransport(t, nil).newConn(origin{"http", "host"}, &cutOff{Conn: client})
	must(t, over(c), newRequest(t, "GET", "http://host", ""), "200", "hi")
	if len(c.transport.idle) != 0 {
		t.Error("the connection is kept")
	}
}

// cutOff fails after so many writes, when it has accepted five more bytes.
type cutOff struct {
	net.Conn
	after int
}

func (c *cutOff) Write(p []byte) (int, error) {
	if c.after == 0 {
		return 5, io.ErrClosedPipe
	}
	c.after--
	return c.Conn.Write(p)
}

// The answer of a server that answers before it has read a large body is received. A server that
// reads none of the body has HeaderTimeout to answer.
func TestLargeBytes(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		timeout      time.Duration
	}{{"answers early", hello, time.Minute}, {"says nothing", "", 100 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			over := make(chan struct{})
			server := startRaw(t, func(conn net.Conn) {
				io.WriteString(conn, c.answer)
				<-over
			})
			transport := newTransport(t, &Transport{HeaderTimeout: c.timeout})
			text := Pieces{bytes.Repeat([]byte("x"), 32<<20)}
			req, err := http.NewRequestWithContext(t.Context(), "POST", server.url, &text)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(req)
			close(over)
			if c.answer != "" && err == nil {
				response.Body.Close()
				return
			}
			late := new(Error)
			if c.answer != "" || !errors.As(err, &late) || !late.Timeout() || !late.Sent || text.Len() != 32<<20 {
				t.Errorf("%v", err)
			}
		})
	}
}
