package wire

import (
	"io"
	"net/http"
	"sync/atomic"
)

// body is the part of an exchange that makes it the body of a response.
type body struct {
	framedReader
	state atomic.Int32
	err   error // the error with which the body has ended
}

// The states of a body. The goroutine that moves it from bodyOpen or bodyReading to an end also
// decides what becomes of the connection.
const (
	bodyOpen int32 = iota
	bodyReading
	bodyEnded
	bodyClosed
)

// begin makes the exchange the response's body. sent reports whether the request was sent, or is
// still being sent; after an error in sending it, the connection is not used again.
func (e *exchange) begin(response *http.Response, f frame, sent bool) {
	e.framedReader = newFramedReader(f, e.conn.reader)
	e.last = e.last || !sent || response.Request.Close
	if f.length == 0 {
		response.Body = http.NoBody
		e.finish(!e.last)
		return
	}
	response.Body = e
}

// Read reads the body. At its end, the connection is free for another exchange.
func (e *exchange) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !e.state.CompareAndSwap(bodyOpen, bodyReading) {
		return 0, e.endError()
	}
	n, err := e.read(p)
	next := bodyOpen
	if err != nil {
		next = bodyEnded
		e.err = e.publicError(err)
	}
	if !e.state.CompareAndSwap(bodyReading, next) {
		return n, http.ErrBodyReadAfterClose
	}
	if err == nil {
		return n, nil
	}
	e.finish(err == io.EOF && !e.last)
	return n, e.err
}

// publicError returns an error as the caller sees it.
func (e *exchange) publicError(err error) error {
	if err == io.EOF {
		return err
	}
	return &Error{Host: e.conn.origin.host, Sent: true, Err: contextOr(e.ctx, err)}
}

// endError returns why nothing can be read any more.
func (e *exchange) endError() error {
	if e.state.Load() == bodyEnded {
		return e.err
	}
	return http.ErrBodyReadAfterClose
}

// Close ends the body, and a Read that is under way. It closes the connection unless the rest of
// the body has already come.
func (e *exchange) Close() error {
	switch e.state.Swap(bodyClosed) {
	case bodyOpen:
		e.finish(!e.last && e.drain())
	case bodyReading:
		e.finish(false)
	}
	return nil
}

// drain reads the part of the body that has already come, and reports whether the body ends with it.
func (e *exchange) drain() bool {
	e.conn.socket.noWait = true
	defer func() { e.conn.socket.noWait = false }()
	for {
		var p [512]byte
		if _, err := e.read(p[:]); err != nil {
			return err == io.EOF
		}
	}
}

// Buffered returns how many bytes of the body, with its framing, have come before the first Read. A
// proxy uses it to decide whether to send the headers on at once.
func (e *exchange) Buffered() int {
	if e.state.Load() != bodyOpen { // another exchange may have the connection by now
		return 0
	}
	return e.conn.reader.Buffered()
}
