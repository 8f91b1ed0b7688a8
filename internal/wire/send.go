package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxCopied is the size of the largest body that is copied behind its headers, to be sent with them
// in one write.
const maxCopied = 16 << 10

// maxBeforeAnswer is the size of the largest body that is sent before the answer is read. A larger
// one may not fit into the buffers of the connection, and a server that has already answered may
// never read it.
const maxBeforeAnswer = 256 << 10

// send writes the request: all of it, or only its headers if its body is large or has yet to be
// read. sent reports whether any byte was written.
func (e *exchange) send(req *http.Request) (sent bool, err error) {
	c := e.conn
	c.socket.wrote = false
	whole, length := measure(req)
	buffer := buffers.Get().(*[]byte)
	*buffer = appendHead(*buffer, req, length)
	err = c.write(buffer, whole, length)
	sent = c.socket.wrote
	putBuffer(buffer)
	switch {
	case err != nil:
		c.socket.limitHeaders(finalAnswerWait)
	case length != whole.Len():
		e.startUpload(req.Body, length)
	default:
		c.socket.limitHeaders(c.transport.HeaderTimeout)
	}
	return sent, err
}

// measure returns the body if it is to be sent at once, and its length, which is below 0 if it is
// unknown.
func measure(req *http.Request) (whole Pieces, length int64) {
	pieces, inMemory := req.Body.(*Pieces)
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return nil, 0
	case inMemory && pieces.Len() <= maxBeforeAnswer:
		return *pieces, pieces.Len()
	case inMemory:
		return nil, pieces.Len()
	case req.ContentLength > 0:
		return nil, req.ContentLength
	}
	return nil, -1
}

// write writes the headers, and a body of this length if there is any.
func (c *conn) write(head *[]byte, body Pieces, length int64) error {
	if length <= maxCopied {
		for _, piece := range body {
			*head = append(*head, piece...)
		}
		_, err := c.stream.Write(*head)
		return err
	}
	parts := append(net.Buffers{*head}, body...)
	if c.state == nil {
		return c.socket.writeAll(parts)
	}
	_, err := parts.WriteTo(c.stream)
	return err
}

// upload is a body that a goroutine of its own sends while the answer is read: it is unknown when
// the body comes and when the server reads it. A nil upload is done.
type upload struct {
	over chan struct{} // closed at the end
	err  error         // valid once over is closed
}

func (u *upload) failed() error {
	if u == nil {
		return nil
	}
	select {
	case <-u.over:
		return u.err
	default:
		return nil
	}
}

// uploadEndWait is how long a finished exchange waits for its upload to end.
const uploadEndWait = 50 * time.Millisecond

// done reports whether the whole body was sent.
func (u *upload) done() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.over:
		return u.err == nil
	case <-time.After(uploadEndWait):
		return false
	}
}

func (e *exchange) startUpload(body io.ReadCloser, length int64) {
	u := &upload{over: make(chan struct{})}
	e.upload = u
	go e.conn.runUpload(u, body, length)
}

// runUpload sends a body. If the body cannot be read, the connection is closed; if it cannot be
// written, the server may still answer why.
func (c *conn) runUpload(u *upload, body io.ReadCloser, length int64) {
	var broken *bodyError
	u.err = c.copy(body, length)
	body.Close()
	if u.err == nil {
		c.socket.limitHeaders(c.transport.HeaderTimeout)
		close(u.over) // from now on another exchange may have the connection
		return
	}
	close(u.over)
	if errors.As(u.err, &broken) {
		c.hangUp()
	} else {
		c.socket.limitHeaders(finalAnswerWait)
	}
}

// bodyError says why a request's body could not be read.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "the request's body: " + e.err.Error() }

func (e *bodyError) Unwrap() error { return e.err }

// copy writes a body as it is read: as many bytes as the headers say, or in chunks.
func (c *conn) copy(body io.Reader, length int64) error {
	if length < 0 {
		return c.copyChunks(body)
	}
	if pieces, ok := body.(*Pieces); ok {
		return c.pushAll(*pieces)
	}
	buffer := make([]byte, maxCopied)
	for left := length; left > 0; {
		n, err := body.Read(buffer[:min(left, int64(len(buffer)))])
		if n > 0 {
			if err := c.push(buffer[:n]); err != nil {
				return err
			}
		}
		left -= int64(n)
		if err == io.EOF && left > 0 {
			return &bodyError{fmt.Errorf("it ends %d bytes before its ContentLength of %d", left, length)}
		}
		if err != nil && err != io.EOF {
			return &bodyError{err}
		}
	}
	return nil
}

// push writes a part of a body. A server that reads none of it has HeaderTimeout to answer.
func (c *conn) push(p []byte) error {
	c.socket.limitHeaders(c.transport.HeaderTimeout)
	_, err := c.stream.Write(p)
	c.socket.unlimitHeaders()
	return err
}

// pushAll writes a body that is in memory.
func (c *conn) pushAll(body Pieces) error {
	for _, piece := range body {
		for part := range slices.Chunk(piece, maxBeforeAnswer) {
			if err := c.push(part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conn) copyChunks(body io.Reader) error {
	const room = len("ffff\r\n") // for the size of a chunk
	buffer := make([]byte, room+maxCopied+len("\r\n"))
	for {
		n, err := body.Read(buffer[room : room+maxCopied])
		if n > 0 {
			if err := c.writeChunk(buffer, room, n); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return c.push([]byte("0\r\n\r\n"))
		}
		if err != nil {
			return &bodyError{err}
		}
	}
}

// writeChunk writes n bytes, which stand in the buffer behind room for their size.
func (c *conn) writeChunk(buffer []byte, room, n int) error {
	size := strconv.AppendInt(nil, int64(n), 16)
	size = append(size, "\r\n"...)
	start := room - len(size)
	copy(buffer[start:], size)
	end := room + n + copy(buffer[room+n:], "\r\n")
	return c.push(buffer[start:end])
}
