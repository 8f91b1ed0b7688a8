package wire

import "io"

// Bytes is the body of a request that is there as a whole:
//
//	text := wire.Bytes(encoded)
//	req.Body = &text
//
// A [Transport] sends all of it, whatever Request.ContentLength says, and does not
// change it: the same Bytes can be sent again. It must not change any more: some of a
// large one may still be sent when the response is there.
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
