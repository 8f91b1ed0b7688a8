package books

import (
	"encoding/binary"
	"errors"
)

// errEncoded is the error of bytes that AppendEntry has not written.
var errEncoded = errors.New("ratelimit: an entry of the books cannot be read")

// AppendEntry appends an entry in binary form.
func AppendEntry(b []byte, e *Entry) []byte {
	for _, name := range [...]string{e.Project, e.Model, e.Key} {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	for _, n := range e.Amounts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// ReadEntry reads an entry in binary form. It returns the bytes after it.
func ReadEntry(b []byte) (e Entry, rest []byte, err error) {
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b, err = nil, errEncoded
			return 0
		}
		b = b[size:]
		return n
	}
	for _, name := range [...]*string{&e.Project, &e.Model, &e.Key} {
		n := number()
		if n > uint64(len(b)) {
			return e, nil, errEncoded
		}
		*name, b = string(b[:n]), b[n:]
	}
	for u := range e.Amounts {
		e.Amounts[u] = int64(number())
	}
	return e, b, err
}
