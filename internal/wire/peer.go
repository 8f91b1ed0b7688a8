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

// peer is a client's connection to a Server. One goroutine serves it.
type peer struct {
	server  *Server
	conn    net.Conn
	tracked tracked // conn, or nil if its listener does not follow requests
	remote  string
	reader  *bufio.Reader // reads from the peer; nil while the handler takes long
	header  http.Header   // the headers of the answer; reused for every request
	reads   deadline
	writes  deadline
	watch   watch
	posted  bool         // the last request was a POST
	request http.Request // the request that is being read

	mu   sync.Mutex
	used bool // a request has come
	idle bool // no byte of the next request has come
}

func newPeer(s *Server, c net.Conn) *peer {
	p := &peer{server: s, conn: c, header: make(http.Header)}
	if addr := c.RemoteAddr(); addr != nil {
		p.remote = addr.String()
	}
	p.reads.set, p.writes.set = c.SetReadDeadline, c.SetWriteDeadline
	p.tracked, _ = c.(tracked)
	p.watch.init(p)
	p.borrowReader()
	return p
}

// tracked is a connection whose listener follows requests, so that it can close idle connections.
type tracked interface {
	Begin() bool // says that the first bytes of a request have come; false: the connection is closed
	End()        // says that the request was answered
}

// readers are pooled: only peers that read or wait for a request have one.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readerSize) }}

func (p *peer) borrowReader() {
	p.reader = readers.Get().(*bufio.Reader)
	p.reader.Reset(p)
}

// returnReader puts the reader back, unless it has bytes of the next request.
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

// finalRequestWait is how long a connection that is about to close waits for a request that may be
// on its way.
const finalRequestWait = 50 * time.Millisecond

// await waits for the first bytes of a request, and reports whether they have come. Behind the first
// request, like net/http, it ignores a few bytes at the end of a connection that are shorter than
// any method.
func (p *peer) await(within time.Duration) bool {
	first := 1
	if p.used {
		first = len("GET ")
	}
	if p.reader.Buffered() >= first {
		return true
	}
	p.beginWait(within)
	_, err := p.reader.Peek(first)
	if err != nil && p.closing() {
		p.reads.within(finalRequestWait)
		_, err = p.reader.Peek(first)
	}
	p.endWait()
	return err == nil
}

// beginWait sets the deadline of the next request.
func (p *peer) beginWait(within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = true
	if p.closing() {
		within = finalRequestWait
	}
	p.reads.within(within)
}

func (p *peer) endWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle, p.used = false, true
}

// abortWait ends the wait for a request if the connection is to be closed.
func (p *peer) abortWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle && p.closing() {
		p.reads.end()
	}
}

// closing reports whether the connection takes no further request.
func (p *peer) closing() bool {
	return p.server.closed.Load() || p.used && p.server.draining.Load()
}

// next serves one request, and reports whether another may follow.
func (p *peer) next() bool {
	if p.tracked != nil {
		if !p.tracked.Begin() {
			return false
		}
		defer p.tracked.End()
	}
	p.reads.within(p.server.HeaderTimeout)
	f, err := p.readRequest()
	if err != nil {
		p.refuse(err)
		return false
	}
	p.reads.until(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := p.newReply(f, cancel)
	r := p.request.WithContext(ctx)
	p.request = http.Request{}
	if !p.handle(w, r) {
		p.conn.Close() // the client must not take the part of the answer for all of it
		w.abandon()
		return false
	}
	cancel()
	return w.finish()
}

// handle calls the handler, and reports whether it has returned without a panic.
func (p *peer) handle(w *reply, r *http.Request) (returned bool) {
	defer p.watch.stop()
	defer func() {
		if !returned {
			p.logPanic(recover())
		}
	}()
	p.server.Handler.ServeHTTP(w, r)
	return true
}

// logPanic logs the kind and the stack of a panic, but not its value, which may be part of the
// request.
func (p *peer) logPanic(v any) {
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

// lingerTime is how long the server waits for a client to read an answer before it closes the
// connection. Bytes that the client still sends would otherwise reset the connection, and destroy
// the answer.
const lingerTime = 500 * time.Millisecond

// linger closes the connection for writing, and reads on for a while.
func (p *peer) linger() {
	half, ok := p.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	p.reads.within(lingerTime)
	io.Copy(io.Discard, struct{ io.Reader }{p.reader})
}

// refuse answers bytes that are no valid request, unless the client has left.
func (p *peer) refuse(err error) {
	var broken net.Error
	if err == io.EOF || errors.As(err, &broken) {
		return
	}
	refused := refusalOf(err)
	status := fmt.Sprintf("%d %s", refused.status, http.StatusText(refused.status))
	p.writes.within(lingerTime)
	err = p.write(fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s: %s", status, status, refused.reason))
	if err == nil {
		p.linger()
	}
}
