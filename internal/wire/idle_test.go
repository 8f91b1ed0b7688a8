package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const hello = ok + "Content-Length: 2\r\n\r\nhi"

// No more connections are kept than MaxIdle.
func TestMaxIdle(t *testing.T) {
	came, together, gone := make(chan struct{}), make(chan struct{}), make(chan struct{}, 8)
	server := startRaw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			came <- struct{}{}
			<-together
			io.WriteString(c, hello)
		}
		gone <- struct{}{}
	})
	transport := newTransport(t, &Transport{MaxIdle: 3})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { send(transport, newRequest(t, "GET", server.url, "")) })
	}
	for range 8 {
		<-came
	}
	close(together)
	all.Wait()
	for range 8 - 3 {
		<-gone
	}
	for at, list := range transport.idle {
		if len(list) != 3 {
			t.Errorf("%d connections to %v", len(list), at)
		}
	}
}

// Connections that are idle for too long are closed, and then no timer is left.
func TestJanitor(t *testing.T) {
	gone := make(chan struct{}, 2)
	server := startRaw(t, func(c net.Conn) {
		always(hello, false)(c)
		gone <- struct{}{}
	})
	transport := newTransport(t, &Transport{IdleTimeout: 20 * time.Millisecond})
	for range 2 {
		must(t, transport, newRequest(t, "GET", server.url, ""), "200", "hi")
		<-gone
		transport.mu.Lock()
		if transport.janitor != nil || len(transport.idle) != 0 {
			t.Errorf("%d idle, and the janitor is %v", len(transport.idle), transport.janitor)
		}
		transport.mu.Unlock()
	}
}

// Connections become idle one after the other.
func TestJanitorTakesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &Transport{IdleTimeout: time.Hour}
		began := time.Now()
		var closed []time.Duration
		for range 3 {
			transport.put(&conn{origin: origin{"http", "host"}, hangUp: func() { closed = append(closed, time.Since(began)) }})
			time.Sleep(20 * time.Minute)
		}
		time.Sleep(30 * time.Minute)
		transport.CloseIdleConnections()
		if want := []time.Duration{60 * time.Minute, 80 * time.Minute, 90 * time.Minute}; !slices.Equal(closed, want) {
			t.Errorf("closed after %v; want %v", closed, want)
		}
		if transport.janitor != nil || len(transport.idle) != 0 {
			t.Error("something is left")
		}
	})
}

// A body is closed before its end. The connection is kept if the rest has already come.
func TestCloseEarly(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		kept         bool
	}{
		{"all of a length is there", hello, true},
		{"all chunks are there", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", true},
		{"some is not", ok + "Content-Length: 3\r\n\r\nhi", false},
		{"a chunk is not", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", false},
		{"there is too much", ok + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), false},
		{"a chunk is malformed", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n", false},
		{"it is the connection's last", ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi", false},
		{"its end is the connection's", ok + "\r\nhi", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startRaw(t, always(c.answer, false))
			transport := newTransport(t, nil)
			for range 2 {
				response, err := transport.RoundTrip(newRequest(t, "GET", server.url, ""))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				response.Body.Close()
				if n, err := response.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
					t.Errorf("%d, %v", n, err)
				}
			}
			if n := server.accepted.Load(); (n == 1) != c.kept {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// Close ends a Read that waits.
func TestCloseWhileReading(t *testing.T) {
	server := startRaw(t, always(ok+"Content-Length: 3\r\n\r\nhi", false))
	response, err := newTransport(t, nil).RoundTrip(newRequest(t, "GET", server.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	go response.Body.Close()
	if n, err := response.Body.Read(make([]byte, 2)); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("%d, %v", n, err)
	}
}

// A connection is not kept after a request with Close.
func TestRequestClose(t *testing.T) {
	server := startRaw(t, always(hello, false))
	transport := newTransport(t, nil)
	for range 2 {
		req := newRequest(t, "GET", server.url, "")
		req.Close = true
		must(t, transport, req, "200", "hi")
	}
	if n := server.accepted.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// A body is read and closed after its connection went to another request.
func TestStaleBody(t *testing.T) {
	server := startRaw(t, always(hello, false))
	transport := newTransport(t, nil)
	first, err := transport.RoundTrip(newRequest(t, "GET", server.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, first.Body)
	second, err := transport.RoundTrip(newRequest(t, "GET", server.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := first.Body.Read(make([]byte, 2)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	first.Body.Close()
	text, err := io.ReadAll(second.Body)
	if string(text) != "hi" || err != nil || server.accepted.Load() != 1 {
		t.Errorf("%q, %v", text, err)
	}
}
