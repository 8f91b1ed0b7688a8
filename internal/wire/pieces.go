package wire

import "io"

// Pieces is the body of a request that is in memory, in pieces that are sent one after another:
//
//	req.Body = &wire.Pieces{encoded}
//
// A [Transport] sends all of it, whatever Request.ContentLength says, and does not consume it: the
// same Pieces can be sent again. The caller must not change the bytes after that: a part of a large
// body may still be sent when the response has come.
type Pieces [][]byte

// Len returns the number of bytes.
func (p *Pieces) Len() (n int64) {
	for _, piece := range *p {
		n += int64(len(piece))
	}
	return n
}

// Read is for other transports: it consumes what it returns.
func (p *Pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

// Close does nothing.
func (p *Pieces) Close() error { return nil }
