package scenarios

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// streamer is a provider whose streams send one event, and go on when the test says so. It
// has few goroutines for many streams.
type streamer struct {
	listener net.Listener
	tasks    sync.WaitGroup
	gone     atomic.Int64 // streams that the gateway has closed

	mu    sync.Mutex
	conns []net.Conn // one for each stream that has begun
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

	firstEvent = `data: {"choices":[{"index":0,"delta":{"content":"one"}}]}` + "\n\n"
	nextEvents = `data: {"choices":[{"index":0,"delta":{"content":" two"}}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}` + "\n\n"
	lastEvent  = "data: [DONE]\n\n"

	streamTokens = 12 // in each stream
)

// newStreamer returns a streamer, and a provider with nothing but its address.
func newStreamer(t *testing.T) (*streamer, *provider) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &streamer{listener: l}
	for range 32 {
		c.tasks.Go(c.accept)
	}
	t.Cleanup(func() {
		l.Close()
		c.each(func(conn net.Conn) { conn.Close() })
		c.tasks.Wait()
	})
	return c, &provider{url: "http://" + l.Addr().String()}
}

// accept begins a stream on each new connection.
func (c *streamer) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		if c.begin(conn) != nil {
			conn.Close()
		}
	}
}

func (c *streamer) begin(conn net.Conn) error {
	r, err := http.ReadRequest(bufio.NewReaderSize(conn, 512))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	_, err = io.WriteString(conn, streamHead+chunk(firstEvent))
	return err
}

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// each calls a function with the connection of each stream.
func (c *streamer) each(do func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		do(conn)
	}
}

// begun returns how many streams have begun.
func (c *streamer) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// watch counts the streams that the gateway closes from now on.
func (c *streamer) watch() {
	c.each(func(conn net.Conn) {
		c.tasks.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				c.gone.Add(1)
			}
		})
	})
}

// finish sends the rest of all streams.
func (c *streamer) finish() {
	rest := chunk(nextEvents) + chunk(usageEvent+lastEvent) + "0\r\n\r\n"
	c.each(func(conn net.Conn) {
		io.WriteString(conn, rest)
		conn.Close()
	})
}

// listener is a client of a stream that has read the first event.
type listener struct {
	*caller
	body io.Reader
}

// listen opens n streams, and returns them once each has its first event.
func listen(t *testing.T, g *gatewayURLs, n int, of call) []listener {
	t.Helper()
	all := make([]listener, n)
	for some := range slices.Chunk(all, 100) { // a busy machine can open that many at a time
		for i := range some {
			some[i].caller = connect(t, g.address())
			if _, err := io.WriteString(some[i], of.raw()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range some {
			some[i].begin(t)
		}
	}
	return all
}

// begin reads a stream up to its first event.
func (l *listener) begin(t *testing.T) {
	t.Helper()
	response, err := http.ReadResponse(l.lines, nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("a stream: %+v, %v", response, err)
	}
	l.body = response.Body
	first := make([]byte, len(firstEvent))
	if _, err := io.ReadFull(l.body, first); err != nil || string(first) != firstEvent {
		t.Fatalf("a stream begins with %q, %v", first, err)
	}
}

// whole expects the rest of a stream, without the usage that the client has not asked for.
func (l *listener) whole(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(l.body); err != nil || string(rest) != nextEvents+lastEvent {
		t.Fatalf("a stream ends with %q, %v", rest, err)
	}
	l.Close()
}
