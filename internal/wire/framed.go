package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
)

// framedReader reads the body of a message, according to its framing.
type framedReader struct {
	frame
	reader  *bufio.Reader
	chunks  io.Reader // nil: the body is not chunked
	trailer bool      // the trailer comes next
}

func newFramedReader(f frame, r *bufio.Reader) framedReader {
	i := framedReader{frame: f, reader: r}
	if f.chunked {
		i.chunks = httputil.NewChunkedReader(r)
	}
	return i
}

// read is like the Read of an [io.Reader].
func (i *framedReader) read(p []byte) (int, error) {
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

func (i *framedReader) readChunks(p []byte) (int, error) {
	n, err := i.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	i.trailer = true
	if next, _ := i.reader.Peek(min(len(crlf), i.reader.Buffered())); n > 0 && string(next) != crlf {
		return n, nil // return the data without waiting for the trailer
	}
	return n, i.readTrailer()
}

const errLongTrailer malformed = "the trailer is too long"

// readTrailer reads and drops the trailer behind the last chunk. It returns io.EOF if the trailer
// is valid.
func (i *framedReader) readTrailer() error {
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
		if _, err := normalize(line); err != nil { // also for a line that ends with LF alone
			return err
		}
	}
	return errLongTrailer
}
