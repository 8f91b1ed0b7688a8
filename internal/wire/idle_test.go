package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const hello = ok + "Content-Length: 2\r\n\r\nhi"

// TestMaxIdle keeps no more connections than it may.
func TestMaxIdle(t *testing.T) {
	together := make(chan struct{})
	server := startRaw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			<-together
			io.WriteString(c, hello)
		}
	})
	transport := newTransport(t, &Transport{MaxIdle: 3})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { send(transport, newRequest(t, "GET", server.url, "")) })
	}
	for range 8 {
		together <- struct{}{}
	}
	all.Wait()
	for at, list := range transport.idle {
		if len(list) != 3 {
			t.Errorf("%d connections to %v", len(list), at)
		}
	}
}

// TestJanitor has connections grow old: the server sees them close, and then nothing
// is left that could wake up.
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

// TestJanitorTakesTheOldest sweeps at a time when only some are too old.
func TestJanitorTakesTheOldest(t *testing.T) {
	transport := newTransport(t, &Transport{IdleTimeout: time.Hour})
	at := origin{"http", "x"}
	closed := 0
	for _, age := range []time.Duration{3 * time.Hour, 2 * time.Hour, time.Minute} {
		transport.push(&conn{origin: at, since: time.Now().Add(-age), hangUp: func() { closed++ }})
	}
	transport.sweep()
	if closed != 2 || len(transport.idle[at]) != 1 || transport.janitor == nil {
		t.Errorf("%d closed, %d left", closed, len(transport.idle[at]))
	}
	transport.CloseIdleConnections()
	if closed != 3 || transport.janitor != nil || len(transport.idle) != 0 {
		t.Errorf("%d closed in the end", closed)
	}
}

// TestCloseEarly closes bodies before their end. The connection is kept if the rest
// was there already.
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

// TestCloseWhileReading ends a Read that waits.
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

// TestStaleBody reads and closes a body whose connection somebody else has by now.
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
