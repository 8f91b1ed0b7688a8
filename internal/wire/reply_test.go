package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// serving serves a handler until the end of the test, and returns a connection to it.
func serving(t testing.TB, h http.HandlerFunc) net.Conn {
	t.Helper()
	return dial(t, serverOf(t, &Server{Handler: h}))
}

func serverOf(t testing.TB, s *Server) string {
	t.Helper()
	return listening(t, "tcp", "127.0.0.1:0", s.Serve, s.Shutdown)
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testkit.Patience))
	return c
}

const (
	get      = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	getClose = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

var dateLine = regexp.MustCompile(`Date: [A-Z][a-z][a-z], \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d GMT\r\n`)

func flush(w http.ResponseWriter) { http.NewResponseController(w).Flush() }

func TestReply(t *testing.T) {
	long := strings.Repeat("x", maxCopied+5)
	for _, c := range []struct {
		name, asked string
		handler     http.HandlerFunc
		want        string // without the Date; what comes until the connection ends
	}{
		{"nothing", getClose, func(w http.ResponseWriter, r *http.Request) {}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"a status", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
			w.Header().Set("Late", "1")
		}, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"a status without a name", getClose, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(799) },
			"HTTP/1.1 799 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"an interim status", getClose, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(102) },
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"early hints", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Later", "1")
			w.WriteHeader(103)
			w.WriteHeader(103)
			w.WriteHeader(404)
			w.WriteHeader(103)
		}, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\nX-Later: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"a whole answer", getClose, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
			io.WriteString(w, "")
			io.WriteString(w, " there")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello there"},
		{"a length", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "hello")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"},
		{"a bad length", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "-5")
			io.WriteString(w, "hello")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"},
		{"more than the length", get + get, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			if _, err := io.WriteString(w, "hello there"); err != http.ErrContentLength {
				t.Error(err)
			}
		}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
		{"less than the length", get + get, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "hell")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"},
		{"chunks", getClose, func(w http.ResponseWriter, r *http.Request) {
			flush(w)
			io.WriteString(w, "hello")
			flush(w)
			flush(w)
			io.WriteString(w, "0123456789")
			io.WriteString(w, "abcdef")
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"},
		{"a long answer", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			io.WriteString(w, long)
		}, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(long), long)},
		{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
			flush(w)
			io.WriteString(w, " there")
		}, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello there"},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + getClose, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"},
		{"HEAD with a length", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "77")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 77\r\nConnection: close\r\n\r\n"},
		{"HEAD of nothing", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {}, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"},
		{"HEAD of a stream", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
			flush(w)
		}, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"},
		{"no content", get + getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "hello"); err != http.ErrBodyNotAllowed {
				t.Error(err)
			}
		}, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"},
		{"not modified", getClose, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(304) },
			"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"},
		{"the handler closes", get + get, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") },
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"headers of the connection", getClose, func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Connection", "Transfer-Encoding", "Keep-Alive", "Upgrade", "Trailer"} {
				w.Header().Set(name, "x")
			}
		}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"lines in a value", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", "a\r\nSet-Cookie: b\nc")
		}, "HTTP/1.1 200 OK\r\nX: a  Set-Cookie: b c\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"lines in a name", getClose, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X: a\r\nY"] = []string{"b"}
		}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"headers are not those of the last answer", get + getClose, func(w http.ResponseWriter, r *http.Request) {
			if !r.Close {
				w.Header()["X"] = []string{"a", "b"}
			}
		}, "HTTP/1.1 200 OK\r\nX: a\r\nX: b\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"an abort before anything was sent", get, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
			panic(http.ErrAbortHandler)
		}, ""},
		{"an abort of a stream", get, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello")
			flush(w)
			io.WriteString(w, "there")
			panic(http.ErrAbortHandler)
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := serving(t, c.handler)
			io.WriteString(conn, c.asked)
			got, err := io.ReadAll(conn)
			if err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
			dates := len(dateLine.FindAll(got, -1))
			if text := string(dateLine.ReplaceAll(got, nil)); text != c.want || dates != strings.Count(text, "HTTP/1.")-strings.Count(text, " 103 ") {
				t.Errorf("%q with %d dates; want %q", text, dates, c.want)
			}
		})
	}
}

// The Date is the present time.
func TestDate(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	c := serving(t, func(http.ResponseWriter, *http.Request) {})
	io.WriteString(c, getClose)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err != nil || date.Before(before) || date.After(time.Now()) {
		t.Errorf("%v, %v; want one from %v on", date, err, before)
	}
}

func TestDateOfTheHandler(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Date", "today") })
	io.WriteString(c, getClose)
	if got, err := io.ReadAll(c); err != nil || strings.Count(string(got), "Date: ") != 1 || !strings.Contains(string(got), "Date: today\r\n") {
		t.Errorf("%q, %v", got, err)
	}
}

// counted counts the writes to its connections.
type counted struct {
	net.Listener
	mu     sync.Mutex
	writes []string
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l}, err
}

type countedConn struct {
	net.Conn
	of *counted
}

func (c countedConn) Write(p []byte) (int, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.writes = append(c.of.writes, string(p))
	return c.Conn.Write(p)
}

// Everything between two flushes is one write, with the headers before it and the end behind it.
func TestWrites(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		ends    []string // of the writes
	}{
		{"a whole answer", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }, []string{"\r\n\r\nhello"}},
		{"a length", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "hello")
		}, []string{"\r\n\r\nhello"}},
		{"a stream", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "a")
			flush(w)
			io.WriteString(w, "b")
			flush(w)
			io.WriteString(w, "c")
		}, []string{"\r\n\r\n1\r\na\r\n", "1\r\nb\r\n", "1\r\nc\r\n0\r\n\r\n"}},
		{"a stream that is flushed at its end", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "a")
			flush(w)
		}, []string{"\r\n\r\n1\r\na\r\n", "0\r\n\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := &counted{Listener: inner}
			s := &Server{Handler: c.handler}
			var served sync.WaitGroup
			served.Go(func() { s.Serve(l) })
			conn := dial(t, inner.Addr().String())
			io.WriteString(conn, getClose)
			io.ReadAll(conn)
			s.Shutdown(t.Context())
			served.Wait()
			if len(l.writes) != len(c.ends) {
				t.Fatalf("%q", l.writes)
			}
			for i, end := range c.ends {
				if i > 0 && l.writes[i] != end || !strings.HasSuffix(l.writes[i], end) {
					t.Errorf("write %d is %q; want %q", i, l.writes[i], end)
				}
			}
		})
	}
}

// A panic ends its own connection only. The log does not have the value of the panic.
func TestPanic(t *testing.T) {
	var logged bytes.Buffer
	s := &Server{Log: slog.New(slog.NewTextHandler(&logged, nil)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("the key is sk-secret")
		case "/fault":
			fmt.Fprint(w, []int{}[len(r.URL.Path)])
		case "/status":
			w.WriteHeader(99)
		case "/abort":
			panic(http.ErrAbortHandler) // not logged
		}
	})}
	addr := serverOf(t, s)
	for _, path := range []string{"/panic", "/fault", "/status", "/abort"} {
		c, other := dial(t, addr), dial(t, addr)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%s: %q", path, got)
		}
		io.WriteString(other, getClose)
		if got, err := io.ReadAll(other); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
			t.Errorf("%s: another one gets %q, %v", path, got, err)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"panic=string", "index out of range", "reply_test.go"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, &logged)
		}
	}
	if n := strings.Count(logged.String(), "\n"); n != 3 || strings.Contains(logged.String(), "sk-secret") {
		t.Errorf("%d lines in the log:\n%s", n, &logged)
	}
}

// A client that does not read its answer is given up at the deadline.
func TestWriteDeadline(t *testing.T) {
	failed := make(chan error, 1)
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		var err error
		for text := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(text)
		}
		<-r.Context().Done()
		failed <- err
	})
	io.WriteString(c, get)
	var late net.Error
	if err := <-failed; !errors.As(err, &late) || !late.Timeout() {
		t.Error(err)
	}
}

// The deadlines of one answer do not apply to the next.
func TestDeadlinesEnd(t *testing.T) {
	const soon = 500 * time.Millisecond
	passed := make(chan struct{})
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-passed
			return
		}
		time.AfterFunc(2*soon, func() { close(passed) })
		control := http.NewResponseController(w)
		control.SetReadDeadline(time.Now().Add(soon))
		control.SetWriteDeadline(time.Now().Add(soon))
	})
	answers := bufio.NewReader(c)
	for _, method := range []string{"POST", "GET"} {
		fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: a\r\n\r\n", method)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(method, err)
		}
		resp.Body.Close()
	}
}

// A client that keeps sending after a refused request still receives the reason.
func TestRefusalIsRead(t *testing.T) {
	c := serving(t, nil)
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() { c.Write(append([]byte("nonsense\r\n\r\n"), make([]byte, 1<<20)...)) })
	if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "400 Bad Request: its first line is not a method, a target and a version") {
		t.Errorf("%q, %v", got, err)
	}
	c.Close()
}

// script is what a handler does, encoded in bytes.
type script []byte

// request returns what the client sends.
func (s script) request() string {
	method, proto := "GET", "1.1"
	if s[0]&1 != 0 {
		method = "HEAD"
	}
	if s[0]&2 != 0 {
		proto = "1.0"
	}
	return fmt.Sprintf("%s / HTTP/%s\r\nHost: a\r\nConnection: close\r\n\r\n", method, proto)
}

func (s script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	if s[0]&4 != 0 {
		w.Header().Set("Content-Length", fmt.Sprint(int(s[1])*100))
	}
	if s[0]&8 != 0 {
		w.WriteHeader([]int{200, 204, 304, 404}[s[1]%4])
	}
	for i, step := range s[2:] {
		switch step % 4 {
		case 0:
			flush(w)
		case 1:
			w.Write(bytes.Repeat([]byte{'a' + byte(i%26)}, int(step)*100))
		case 2:
			w.Write([]byte{'A' + byte(i%26)})
		case 3:
			io.WriteString(w, strings.Repeat("x", int(step)))
		}
	}
}

// FuzzReply lets the same handler answer through net/http's server and ours. The client must not
// see a difference.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"\x00\x00", "\x00\x00\x06", "\x04\x01\x19\x19\x19\x19", "\x00\x00\x01\x00\x01\x00", "\x02\x00\x01\x00\xfd", "\x01\x00\x06", "\x08\x01\x06", "\x08\x02\x00", "\x0c\x07\xfd", "\x00\x00\xfd\xfd\x00\xf9\x06"} {
		f.Add([]byte(s))
	}
	var current script // requests are sent one after another
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) })
	std := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	theirs := listening(f, "unix", filepath.Join(f.TempDir(), "socket"), std.Serve, std.Shutdown)
	server := &Server{Handler: handler}
	ours := listening(f, "unix", filepath.Join(f.TempDir(), "socket"), server.Serve, server.Shutdown)
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) < 2 {
			return
		}
		current = steps[:min(len(steps), 50)]
		want, got := current.play(t, theirs), current.play(t, ours)
		if want != got {
			t.Errorf("%q: net/http says %.80q, and we %.80q", steps, want, got)
		}
	})
}

// play sends the request, and returns what a client sees of the answer.
func (s script) play(t *testing.T, socket string) string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, s.request())
	r := &http.Request{Method: strings.Fields(s.request())[0]}
	resp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		return "no answer"
	}
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s %s %v %v %s", resp.Proto, resp.Status, resp.Close, err, body)
}
