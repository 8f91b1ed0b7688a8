package wire

import (
	"bufio"
	"bytes"
	"io"
)

// intake is a message's body as it comes: its frame, and where it is read from.
type intake struct {
	frame
	reader  *bufio.Reader
	chunks  io.Reader // nil: it is not chunked
	trailer bool      // what comes next is the trailer
}

func (c *intake) read(p []byte) (int, error) {
	switch {
	case c.trailer:
		return 0, c.readTrailer()
	case c.chunked:
		return c.readChunks(p)
	case c.length < 0:
		return c.reader.Read(p)
	}
	n, err := c.reader.Read(p[:min(int64(len(p)), c.length)])
	c.length -= int64(n)
	switch {
	case c.length == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *intake) readChunks(p []byte) (int, error) {
	n, err := c.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	c.trailer = true
	if next, _ := c.reader.Peek(min(len(crlf), c.reader.Buffered())); n > 0 && string(next) != crlf {
		return n, nil // which does not wait for the trailer
	}
	return n, c.readTrailer()
}

// readTrailer reads what stands behind the last chunk, and drops it. It returns io.EOF
// if that is as it should be.
func (c *intake) readTrailer() error {
	for left := readerSize; left > 0; {
		line, err := c.reader.ReadSlice('\n')
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
