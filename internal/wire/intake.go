package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
)

// intake is a message's body as it comes: its frame, and where it is read from.
type intake struct {
	frame
	reader  *bufio.Reader
	chunks  io.Reader // nil: it is not chunked
	trailer bool      // what comes next is the trailer
}

func newIntake(f frame, r *bufio.Reader) intake {
	i := intake{frame: f, reader: r}
	if f.chunked {
		i.chunks = httputil.NewChunkedReader(r)
	}
	return i
}

// read is as that of an [io.Reader].
func (i *intake) read(p []byte) (int, error) {
	switch {
	case i.trailer:
		return 0, i.readTrailer()
	case i.chunked:
		return i.readChunks(p)
	case i.length < 0:
		return i.reader.Read(p)
	}
	n, err := i.reader.Read(p[:min(int64(len(p)), i.length)])
	i.length -= int64(n)
	switch {
	case i.length == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

const crlf = "\r\n"

func (i *intake) readChunks(p []byte) (int, error) {
	n, err := i.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	i.trailer = true
	if next, _ := i.reader.Peek(min(len(crlf), i.reader.Buffered())); n > 0 && string(next) != crlf {
		return n, nil // which does not wait for the trailer
	}
	return n, i.readTrailer()
}

const errLongTrailer malformed = "the trailer is too long"

// readTrailer reads what stands behind the last chunk, and drops it. It returns io.EOF
// if that is as it should be.
func (i *intake) readTrailer() error {
	for left := readerSize; left > 0; {
		line, err := i.reader.ReadSlice('\n')
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
