package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// peer is a client's connection. One goroutine serves it.
type peer struct {
	server *Server
	conn   net.Conn
	remote string
	reader *bufio.Reader // of the peer; nil while a request takes long
	header http.Header   // of the answer, used again and again
	reads  term
	writes term
	watch  watch
	posted bool         // the last request was a POST
	asked  http.Request // while it is read

	mu   sync.Mutex
	used bool // there was a request
	idle bool // nothing of the next request has come
}

func newPeer(s *Server, c net.Conn) *peer {
	p := &peer{server: s, conn: c, header: make(http.Header)}
	if addr := c.RemoteAddr(); addr != nil {
		p.remote = addr.String()
	}
	p.reads.set, p.writes.set = c.SetReadDeadline, c.SetWriteDeadline
	p.watch.init(p)
	p.borrowReader()
	return p
}

// readers are those of peers that read something, or wait for it.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readerSize) }}

func (p *peer) borrowReader() {
	p.reader = readers.Get().(*bufio.Reader)
	p.reader.Reset(p)
}

// returnReader gives the reader back, unless some of the next request is in it.
func (p *peer) returnReader() {
	if p.reader.Buffered() > 0 {
		return
	}
	p.reader.Reset(nil)
	readers.Put(p.reader)
	p.reader = nil
}

// serve serves requests until the connection ends.
func (p *peer) serve() {
	defer p.server.forget(p)
	defer p.conn.Close()
	wait := p.server.HeaderTimeout
	for p.await(wait) && p.next() {
		wait = p.server.IdleTimeout
	}
}

// lastCall is how long a request may take that is on its way while its connection is
// about to be closed.
const lastCall = 50 * time.Millisecond

// await waits for the first bytes of a request. It reports whether they have come. As
// for net/http, what comes of a second one before an end is nothing if it is shorter
// than any method.
func (p *peer) await(within time.Duration) bool {
	first := 1
	if p.used {
		first = len("GET ")
	}
	if p.reader.Buffered() >= first {
		return true
	}
	p.rest(within)
	_, err := p.reader.Peek(first)
	if err != nil && p.unwanted() {
		p.reads.within(lastCall)
		_, err = p.reader.Peek(first)
	}
	p.wake()
	return err == nil
}

// rest begins to wait for a request.
func (p *peer) rest(within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = true
	if p.unwanted() {
		within = lastCall
	}
	p.reads.within(within)
}

func (p *peer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle, p.used = false, true
}

// rouse ends the wait for a request that is not wanted any more.
func (p *peer) rouse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle && p.unwanted() {
		p.reads.end()
	}
}

// unwanted reports whether the connection is not to have another request.
func (p *peer) unwanted() bool {
	return p.server.closed.Load() || p.used && p.server.ending.Load()
}

// next serves a request. It reports whether there may be another.
func (p *peer) next() bool {
	p.reads.within(p.server.HeaderTimeout)
	f, err := p.readRequest()
	if err != nil {
		p.refuse(err)
		return false
	}
	p.reads.until(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	v := p.visit(f, cancel)
	r := p.asked.WithContext(ctx)
	p.asked = http.Request{}
	if !p.handle(v, r) {
		p.conn.Close() // what is there of the answer is not its end
		v.abandon()
		return false
	}
	cancel()
	return v.finish()
}

// handle calls the handler. It reports whether that has not panicked.
func (p *peer) handle(v *visit, r *http.Request) (well bool) {
	defer p.watch.stop()
	defer func() {
		if !well {
			p.tell(recover())
		}
	}()
	p.server.Handler.ServeHTTP(v, r)
	return true
}

// tell logs a panic: what kind it was and where, but not what it says, which may be of
// the request.
func (p *peer) tell(v any) {
	if v == http.ErrAbortHandler || p.server.Log == nil {
		return
	}
	kind := fmt.Sprintf("%T", v)
	if fault, ok := v.(runtime.Error); ok {
		kind = fault.Error()
	}
	p.server.Log.Error("a handler has panicked", "panic", kind, "stack", string(debug.Stack()))
}

// Read reads from the connection.
func (p *peer) Read(b []byte) (int, error) {
	if p.watch.take(b) {
		return 1, nil
	}
	for {
		n, err := p.conn.Read(b)
		if err == nil || !p.reads.tooSoon(err) {
			return n, err
		}
	}
}

// write writes to the connection.
func (p *peer) write(b []byte) error {
	for {
		n, err := p.conn.Write(b)
		if err == nil || !p.writes.tooSoon(err) {
			return err
		}
		b = b[n:]
	}
}

// lastRead is how long we wait for a client to have read an answer behind which the
// connection is closed. What it still sends would destroy the answer on its way.
const lastRead = 500 * time.Millisecond

// linger closes the connection for writing, and reads on for a while.
func (p *peer) linger() {
	half, ok := p.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	p.reads.within(lastRead)
	io.Copy(io.Discard, struct{ io.Reader }{p.reader})
}

// refuse says why something is no request. Who has left is not told.
func (p *peer) refuse(err error) {
	var broken net.Error
	if err == io.EOF || errors.As(err, &broken) {
		return
	}
	no := refused(err)
	status := fmt.Sprintf("%d %s", no.status, http.StatusText(no.status))
	p.writes.within(lastRead)
	err = p.write(fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s: %s", status, status, no.reason))
	if err == nil {
		p.linger()
	}
}
