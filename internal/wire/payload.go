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

// payload is a request's body.
type payload struct {
	visit  *visit
	expect bool // the client waits for 100 before it sends it

	mu sync.Mutex // held while it is read
	intake
	err error // how it has ended; nil: it has not
}

// body makes the payload that of a request.
func (v *visit) body(r *http.Request, f frame) {
	b := &v.payload
	b.visit, b.intake = v, newIntake(f, v.peer.reader)
	if f.length == 0 {
		b.err = io.EOF
		r.Body = http.NoBody
		v.peer.watch.start()
		return
	}
	b.expect = r.ProtoMinor > 0 && len(r.Header["Expect"]) > 0 && strings.EqualFold(r.Header["Expect"][0], "100-continue")
	r.Body = b
}

// Read reads the body. A client that waits for it is told to send it.
func (b *payload) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.expect {
		b.visit.allow()
	}
	n, err := b.read(p)
	if err == nil {
		return n, nil
	}
	b.err = err
	switch {
	case err == io.EOF:
		b.visit.peer.watch.start()
	case gone(err):
		b.visit.cancel()
	}
	return n, err
}

// gone reports whether an error says that the client has left. One that is late, or
// sends what makes no sense, can still be told so.
func gone(err error) bool {
	fault, ok := errors.AsType[net.Error](err)
	return errors.Is(err, io.ErrUnexpectedEOF) || ok && !fault.Timeout()
}

// Close does nothing: what is left of the body is read after the answer.
func (b *payload) Close() error { return nil }

// mostLeft is how much of a body is read that the handler has not: if there is more, to
// close the connection is cheaper.
const mostLeft = 256 << 10

// lost reports whether the end of the body will not be reached: it has broken off, or
// more is left than is worth reading, or the client waits to be asked for it.
func (b *payload) lost() bool {
	if !b.mu.TryLock() {
		return false // somebody reads it
	}
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err != io.EOF
	}
	return b.length > mostLeft || b.expect && !b.visit.allowed()
}

// leave ends the body when the handler has returned: nobody can read it any more. It
// reports whether it was at its end, or could be brought there.
func (b *payload) leave(drain bool) bool {
	if !b.mu.TryLock() {
		b.visit.peer.reads.end() // for which somebody still waits
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
	defer giveBack(buffer)
	room := (*buffer)[:cap(*buffer)]
	b.visit.peer.reads.within(time.Second)
	for n := 0; n <= mostLeft && b.err == nil; {
		var read int
		read, b.err = b.read(room)
		n += read
	}
}
