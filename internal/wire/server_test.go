package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// rawServer passes each of its connections to a function.
type rawServer struct {
	url      string
	accepted atomic.Int32
	open     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func startRaw(t testing.TB, serve func(c net.Conn)) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + listener.Addr().String()}
	s.open.Go(func() { s.acceptAll(listener, serve) })
	t.Cleanup(func() {
		listener.Close()
		s.closeAll()
		s.open.Wait()
	})
	return s
}

func (s *rawServer) acceptAll(listener net.Listener, serve func(c net.Conn)) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.accepted.Add(1)
		s.open.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
}

func (s *rawServer) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

// always answers each request with the same bytes, and then closes the connection if closes is set.
func always(text string, closes bool) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			if _, err := io.WriteString(c, text); err != nil || closes {
				return
			}
		}
	}
}

// readRequest reads a request to its end.
func readRequest(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

// newTransport returns a transport whose connections end with the test.
func newTransport(t testing.TB, o *Transport) *Transport {
	t.Helper()
	if o == nil {
		o = &Transport{}
	}
	t.Cleanup(o.CloseIdleConnections)
	return o
}

func newRequest(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		text := Pieces{[]byte(body)}
		req.Body = &text
	}
	return req
}

// result is everything that a caller sees of a response.
type result struct {
	Status string
	Header http.Header
	Length int64
	Body   string
}

// send returns the response, and the first error.
func send(rt http.RoundTripper, req *http.Request) (result, error) {
	response, err := rt.RoundTrip(req)
	if err != nil {
		return result{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return result{response.Status, response.Header, response.ContentLength, string(text)}, err
}

// must fails the test unless this answer comes.
func must(t testing.TB, rt http.RoundTripper, req *http.Request, status, body string) {
	t.Helper()
	got, err := send(rt, req)
	if err != nil || !strings.HasPrefix(got.Status, status) || got.Body != body {
		t.Fatalf("%s %.60q, %v; want %s %.60q", got.Status, got.Body, err, status, body)
	}
}

// over sends requests over one connection.
func over(c *conn) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		c.transport.pop(c.origin) // where a used connection is
		response, _, err := c.exchange(req)
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
