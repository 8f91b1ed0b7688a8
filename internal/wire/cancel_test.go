package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// big is more than the buffers of two sockets hold.
const big = 32 << 20

// TestCancel ends the context of a request in each of its stages. The caller gets the context's
// error, and the server sees that the connection is closed.
func TestCancel(t *testing.T) {
	for _, c := range []struct {
		name, scheme string
		body         func() io.ReadCloser
		serve        func(c net.Conn, reached func()) // serves up to the stage, and then calls reached
		sent         bool
	}{
		{"handshake", "https", nil, func(c net.Conn, reached func()) {
			c.Read(make([]byte, 1))
			reached()
		}, false},
		{"writing", "http", func() io.ReadCloser { return &Pieces{make([]byte, big)} }, func(c net.Conn, reached func()) {
			io.ReadFull(c, make([]byte, 1<<20))
			reached()
		}, true},
		{"writing what is streamed", "http", func() io.ReadCloser { return io.NopCloser(io.LimitReader(zeros{}, big)) }, func(c net.Conn, reached func()) {
			io.ReadFull(c, make([]byte, 1<<20))
			reached()
		}, true},
		{"waiting for the request's body", "http", func() io.ReadCloser { return stuck(t) }, func(c net.Conn, reached func()) {
			bufio.NewReader(c).ReadString('c') // up to the header that says chunked
			reached()
		}, true},
		{"waiting for headers", "http", nil, func(c net.Conn, reached func()) {
			readRequest(bufio.NewReader(c))
			reached()
		}, true},
		{"in the middle of the headers", "http", nil, func(c net.Conn, reached func()) {
			readRequest(bufio.NewReader(c))
			io.WriteString(c, ok+"Content-")
			reached()
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			server := startRaw(t, func(conn net.Conn) {
				c.serve(conn, cancel)
				io.Copy(io.Discard, conn)
				close(gone)
			})
			req := newRequest(t, "POST", c.scheme+server.url[len("http"):], "").WithContext(ctx)
			if c.body != nil {
				req.Body = c.body()
			}
			_, err := send(newTransport(t, nil), req)
			var fault *Error
			if !errors.As(err, &fault) || !errors.Is(err, context.Canceled) || fault.Sent != c.sent {
				t.Errorf("%#v", err)
			}
			<-gone
		})
	}
}

// zeros is endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// stuck returns a body that does not come before the end of the test.
func stuck(t *testing.T) io.ReadCloser {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

// TestCancelBody ends the context while the response is read.
func TestCancelBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "\r\nhalf"} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		server := startRaw(t, func(c net.Conn) {
			always(ok+framing, false)(c)
			close(gone)
		})
		transport := newTransport(t, nil)
		response, err := transport.RoundTrip(newRequest(t, "GET", server.url, "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		go cancel()
		var fault *Error
		if n, err := response.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, context.Canceled) || !errors.As(err, &fault) || !fault.Sent {
			t.Errorf("%d, %v", n, err)
		}
		<-gone
		if n, err := response.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("once more: %d, %v", n, err)
		}
		response.Body.Close()
	}
}

// A context that ends after the response was read does not close the connection.
func TestCancelAfterEnd(t *testing.T) {
	for _, framing := range []string{"Content-Length: 0\r\n\r\n", "Content-Length: 4\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n"} {
		server := startRaw(t, always(ok+framing, false))
		transport := newTransport(t, nil)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := send(transport, newRequest(t, "GET", server.url, "").WithContext(ctx)); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		if n := server.accepted.Load(); n != 1 {
			t.Errorf("%q: %d connections", framing, n)
		}
	}
}

// With an ended context nothing is sent, with or without an idle connection.
func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var asked atomic.Int32
	server := startRaw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			asked.Add(1)
			io.WriteString(c, hello)
		}
	})
	transport := newTransport(t, nil)
	for n := range int32(2) {
		_, err := send(transport, newRequest(t, "GET", server.url, "").WithContext(ctx))
		var fault *Error
		if !errors.As(err, &fault) || fault.Sent || !errors.Is(err, context.Canceled) || server.accepted.Load() != n {
			t.Errorf("%v; %d connections", err, server.accepted.Load())
		}
		must(t, transport, newRequest(t, "GET", server.url, ""), "200", "hi")
	}
	if n := asked.Load(); n != 2 || server.accepted.Load() != 1 {
		t.Errorf("%d requests on %d connections", n, server.accepted.Load())
	}
}

// TestTimeouts lets each timeout pass.
func TestTimeouts(t *testing.T) {
	silent := startRaw(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	slow := startRaw(t, func(c net.Conn) {
		readRequest(bufio.NewReader(c))
		io.WriteString(c, ok+"Content-")
		io.Copy(io.Discard, c)
	})
	soon := 20 * time.Millisecond
	streamed := newRequest(t, "POST", silent.url, "")
	streamed.Body = io.NopCloser(strings.NewReader("text"))
	for _, c := range []struct {
		name      string
		transport *Transport
		req       *http.Request
		want      error
		sent      bool
	}{
		{"handshake", &Transport{DialTimeout: soon}, newRequest(t, "GET", "https"+silent.url[len("http"):], ""), errDialTimeout, false},
		{"headers", &Transport{HeaderTimeout: soon}, newRequest(t, "GET", silent.url, ""), errHeaderTimeout, true},
		{"the rest of the headers", &Transport{HeaderTimeout: soon}, newRequest(t, "GET", slow.url, ""), errHeaderTimeout, true},
		{"headers of what is streamed", &Transport{HeaderTimeout: soon}, streamed, errHeaderTimeout, true},
	} {
		_, err := send(newTransport(t, c.transport), c.req)
		var fault *Error
		if slow, is := err.(net.Error); !is || !slow.Timeout() {
			t.Errorf("%s: %#v is no timeout", c.name, err)
		}
		if !errors.As(err, &fault) || !errors.Is(err, c.want) || fault.Sent != c.sent || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %#v", c.name, err)
		}
	}
}

// A body may come much later than HeaderTimeout.
func TestHeaderTimeoutSparesBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			readRequest(bufio.NewReader(server))
			time.Sleep(59 * time.Second)
			io.WriteString(server, ok+"Content-Length: 2\r\n\r\n")
			time.Sleep(time.Hour)
			io.WriteString(server, "hi")
		}()
		c := (&Transport{HeaderTimeout: time.Minute}).newConn(origin{"http", "host"}, client)
		must(t, over(c), newRequest(t, "GET", "http://host", ""), "200", "hi")
		c.transport.CloseIdleConnections()
	})
}

// The headers come before the end of the request, and the body long after it.
func TestHeaderTimeoutIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		body, rest := io.Pipe()
		go func() {
			defer server.Close()
			req, _ := http.ReadRequest(bufio.NewReader(server))
			io.WriteString(server, ok+"Content-Length: 2\r\n\r\n")
			io.Copy(io.Discard, req.Body)
			time.Sleep(time.Hour)
			io.WriteString(server, "hi")
		}()
		c := (&Transport{HeaderTimeout: time.Minute}).newConn(origin{"http", "host"}, client)
		req := newRequest(t, "POST", "http://host", "")
		req.Body = body
		time.AfterFunc(time.Hour, func() { rest.Close() })
		must(t, over(c), req, "200", "hi")
		c.transport.CloseIdleConnections()
	})
}

// Many requests on one connection are each as slow as they may be; then one is slower.
func TestHeaderTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			r := bufio.NewReader(server)
			for n := range 10 {
				readRequest(r)
				time.Sleep(time.Minute - time.Second)
				io.WriteString(server, ok+"Content-Length: 2\r\n\r\n")
				time.Sleep(time.Duration(n) * time.Second)
				io.WriteString(server, "hi")
			}
			io.Copy(io.Discard, r)
		}()
		c := (&Transport{HeaderTimeout: time.Minute}).newConn(origin{"http", "host"}, client)
		for range 10 {
			must(t, over(c), newRequest(t, "GET", "http://host", ""), "200", "hi")
		}
		began := time.Now()
		if _, err := send(over(c), newRequest(t, "GET", "http://host", "")); err != errHeaderTimeout || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		c.transport.CloseIdleConnections()
	})
}

// A connection accepts only a part of its second request, and the server sends nothing. The client
// waits a shorter time for an answer than HeaderTimeout.
func TestLastWord(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"whole": nil, "streamed": io.NopCloser(strings.NewReader("text"))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				go always(hello, false)(server)
				numb := &cutOff{Conn: client, after: 1}
				c := (&Transport{HeaderTimeout: time.Minute}).newConn(origin{"http", "host"}, numb)
				must(t, over(c), newRequest(t, "GET", "http://host", ""), "200", "hi")
				req := newRequest(t, "GET", "http://host", "")
				if body != nil {
					numb.after, req.Body = 1, body // written after the headers
				}
				began := time.Now()
				if _, err := send(over(c), req); err != io.ErrClosedPipe || time.Since(began) != finalAnswerWait {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				c.transport.CloseIdleConnections()
			})
		})
	}
}
