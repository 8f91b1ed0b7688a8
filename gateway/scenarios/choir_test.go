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

// choir is a provider of streams that all begin, and go on only when they are told to. It
// has few goroutines for many streams.
type choir struct {
	listener net.Listener
	tasks    sync.WaitGroup
	gone     atomic.Int64 // streams that were closed by the other side

	mu    sync.Mutex
	conns []net.Conn // of streams that have begun
}

const (
	choirHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

	firstEvent = `data: {"choices":[{"index":0,"delta":{"content":"one"}}]}` + "\n\n"
	nextEvents = `data: {"choices":[{"index":0,"delta":{"content":" two"}}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}` + "\n\n"
	lastEvent  = "data: [DONE]\n\n"

	choirTokens = 12 // of each stream
)

// newChoir returns a choir, and a provider that stands for its address alone.
func newChoir(t *testing.T) (*choir, *provider) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &choir{listener: l}
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

// accept begins one stream after the other.
func (c *choir) accept() {
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

func (c *choir) begin(conn net.Conn) error {
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
	_, err = io.WriteString(conn, choirHead+chunk(firstEvent))
	return err
}

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// each does something with all streams.
func (c *choir) each(do func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		do(conn)
	}
}

// begun returns how many streams have.
func (c *choir) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// watch counts from now on the streams that are closed by the other side.
func (c *choir) watch() {
	c.each(func(conn net.Conn) {
		c.tasks.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				c.gone.Add(1)
			}
		})
	})
}

// finish ends all streams in good order.
func (c *choir) finish() {
	rest := chunk(nextEvents) + chunk(usageEvent+lastEvent) + "0\r\n\r\n"
	c.each(func(conn net.Conn) {
		io.WriteString(conn, rest)
		conn.Close()
	})
}

// listener is a client of a stream, which has read its first event.
type listener struct {
	*caller
	body io.Reader
}

// listen opens so many streams, and returns them once each has its first event.
func listen(t *testing.T, g *door, n int, of call) []listener {
	t.Helper()
	all := make([]listener, n)
	for some := range slices.Chunk(all, 100) { // at a time, which a busy machine can do
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

// whole expects that the rest of a stream comes, without the usage that it has not asked
// for.
func (l *listener) whole(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(l.body); err != nil || string(rest) != nextEvents+lastEvent {
		t.Fatalf("a stream ends with %q, %v", rest, err)
	}
	l.Close()
}
