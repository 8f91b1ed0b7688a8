package wire

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// payload is the body of a request.
type payload struct {
	reply  *reply
	expect bool // the client waits for 100 Continue before it sends the body

	mu sync.Mutex // locked while the body is read
	framedReader
	err error // the error with which the body has ended; nil: it has not
}

// body makes the payload the body of a request.
func (w *reply) body(r *http.Request, f frame) {
	b := &w.payload
	b.reply, b.framedReader = w, newFramedReader(f, w.peer.reader)
	if f.length == 0 {
		b.err = io.EOF
		r.Body = http.NoBody
		w.peer.watch.start()
		return
	}
	b.expect = r.ProtoMinor > 0 && len(r.Header["Expect"]) > 0 && strings.EqualFold(r.Header["Expect"][0], "100-continue")
	r.Body = b
}

// Read reads the body. It first sends 100 Continue to a client that waits for it.
func (b *payload) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.expect {
		b.reply.sendContinue()
	}
	n, err := b.read(p)
	if err == nil {
		return n, nil
	}
	b.err = err
	switch {
	case err == io.EOF:
		b.reply.peer.watch.start()
	case clientLeft(err):
		b.reply.cancel()
	}
	return n, err
}

// clientLeft reports whether an error means that the client has left. A client that is late, or
// sends nonsense, can still read an answer.
func clientLeft(err error) bool {
	fault, ok := errors.AsType[net.Error](err)
	return errors.Is(err, io.ErrUnexpectedEOF) || ok && !fault.Timeout()
}

// Close does nothing: the rest of the body is read after the answer.
func (b *payload) Close() error { return nil }

// maxDrain is how many bytes of a body are read and dropped if the handler has not read them. If
// there are more, it is cheaper to close the connection.
const maxDrain = 256 << 10

// wontEnd reports whether the end of the body will not be reached: the body has broken off, too
// much of it is left, or the client still waits for 100 Continue.
func (b *payload) wontEnd() bool {
	if !b.mu.TryLock() {
		return false // the handler is reading it
	}
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err != io.EOF
	}
	return b.length > maxDrain || b.expect && !b.reply.hasContinued()
}

// finish ends the body when the handler has returned: later reads fail. With drain it first reads the
// rest of the body. It reports whether the end of the body was reached.
func (b *payload) finish(drain bool) bool {
	if !b.mu.TryLock() {
		b.reply.peer.reads.end() // interrupts a goroutine that still reads
		b.mu.Lock()
		drain = false
	}
	defer b.mu.Unlock()
	if b.err == nil && drain {
		b.drain()
	}
	atEnd := b.err == io.EOF
	b.err = http.ErrBodyReadAfterClose
	return atEnd
}

func (b *payload) drain() {
	buffer := buffers.Get().(*[]byte)
	defer putBuffer(buffer)
	room := (*buffer)[:cap(*buffer)]
	b.reply.peer.reads.within(time.Second)
	for n := 0; n <= maxDrain && b.err == nil; {
		var read int
		read, b.err = b.read(room)
		n += read
	}
}
