package wire

import (
	"io"
	"net/http"
	"sync/atomic"
)

// body is what an exchange needs to know to be the body of a response.
type body struct {
	intake
	state atomic.Int32
	err   error // how it has ended
}

// The states of a body. Who takes it out of open or reading to an end decides about the
// connection.
const (
	open int32 = iota
	reading
	atEnd
	closed
)

// begin makes the exchange the response's body. well is whether all of the request is
// sent, or still being sent.
func (e *exchange) begin(response *http.Response, f frame, well bool) {
	e.intake = newIntake(f, e.conn.reader)
	e.last = e.last || !well || response.Request.Close
	if f.length == 0 {
		response.Body = http.NoBody
		e.finish(!e.last)
		return
	}
	response.Body = e
}

// Read reads the body. Its end gives the connection back.
func (e *exchange) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !e.state.CompareAndSwap(open, reading) {
		return 0, e.over()
	}
	n, err := e.read(p)
	next := open
	if err != nil {
		next = atEnd
		e.err = e.blame(err)
	}
	if !e.state.CompareAndSwap(reading, next) {
		return n, http.ErrBodyReadAfterClose
	}
	if err == nil {
		return n, nil
	}
	e.finish(err == io.EOF && !e.last)
	return n, e.err
}

// blame returns what the caller is told of an error.
func (e *exchange) blame(err error) error {
	if err == io.EOF {
		return err
	}
	return &Error{Host: e.conn.origin.host, Sent: true, Err: ended(e.ctx, err)}
}

// over returns why nothing can be read any more.
func (e *exchange) over() error {
	if e.state.Load() == atEnd {
		return e.err
	}
	return http.ErrBodyReadAfterClose
}

// Close ends the body, and a Read that is under way. Unless all of the body is there
// already, that closes the connection.
func (e *exchange) Close() error {
	switch e.state.Swap(closed) {
	case open:
		e.finish(!e.last && e.drained())
	case reading:
		e.finish(false)
	}
	return nil
}

// drained reads what is left of the body, as far as that is there. It reports whether
// that was all.
func (e *exchange) drained() bool {
	e.conn.socket.held = true
	defer func() { e.conn.socket.held = false }()
	for {
		var p [512]byte
		if _, err := e.read(p[:]); err != nil {
			return err == io.EOF
		}
	}
}
