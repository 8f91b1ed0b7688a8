package wire

import "io"

// Bytes is the body of a request that is in memory:
//
//	text := wire.Bytes(encoded)
//	req.Body = &text
//
// A [Transport] sends all of it, whatever Request.ContentLength says, and does not consume it: the
// same Bytes can be sent again. The caller must not change the bytes after that: a part of a large
// body may still be sent when the response has come.
type Bytes []byte

// Read is for other transports: it consumes what it returns.
func (b *Bytes) Read(p []byte) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, *b)
	*b = (*b)[n:]
	return n, nil
}

// Close does nothing.
func (b *Bytes) Close() error { return nil }
