package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// body is what an exchange needs to know to be the body of a response.
type body struct {
	frame
	chunks  io.Reader // nil: it is not chunked
	trailer bool      // what comes next is the trailer
	state   atomic.Int32
	err     error // how it has ended
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
	e.frame = f
	e.last = e.last || !well || response.Request.Close
	if f.length == 0 {
		response.Body = http.NoBody
		e.finish(!e.last)
		return
	}
	if f.chunked {
		e.chunks = httputil.NewChunkedReader(e.conn.reader)
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

func (e *exchange) read(p []byte) (int, error) {
	switch {
	case e.trailer:
		return 0, e.readTrailer()
	case e.chunked:
		return e.readChunks(p)
	case e.length < 0:
		return e.conn.reader.Read(p)
	}
	n, err := e.conn.reader.Read(p[:min(int64(len(p)), e.length)])
	e.length -= int64(n)
	switch {
	case e.length == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

const crlf = "\r\n"

func (e *exchange) readChunks(p []byte) (int, error) {
	n, err := e.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	e.trailer = true
	if next, _ := e.conn.reader.Peek(min(len(crlf), e.conn.reader.Buffered())); n > 0 && string(next) != crlf {
		return n, nil // which does not wait for the trailer
	}
	return n, e.readTrailer()
}

const errLongTrailer malformed = "the trailer is too long"

// readTrailer reads what stands behind the last chunk, and drops it. It returns io.EOF
// if that is as it should be.
func (e *exchange) readTrailer() error {
	for left := readerSize; left > 0; {
		line, err := e.conn.reader.ReadSlice('\n')
		switch err {
		case nil:
		case io.EOF:
			return io.ErrUnexpectedEOF
		case bufio.ErrBufferFull:
			return errLongTrailer
		default:
			return err
		}
		left -= len(line)
		line = bytes.TrimSuffix(line, []byte(crlf))
		if len(line) == 0 {
			return io.EOF
		}
		if _, err := normalize(line); err != nil { // as it is of a line that ends with LF alone
			return err
		}
	}
	return errLongTrailer
}
