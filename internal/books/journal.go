package books

import (
	"encoding/binary"
	"errors"
)

// errEncoded is the error of bytes that AppendEntry has not written.
var errEncoded = errors.New("ratelimit: an entry of the books cannot be read")

// longEntry plus the number of amounts comes before an entry that has more than a short one. That is more than maxName, so
// that it cannot be the length of a name. Earlier versions had 21 units and have written maxName + 1.
const longEntry = maxName + 1 - 21

// AppendEntry appends an entry in binary form: the names of its owner and the amounts. Of an entry that is short, it
// leaves out the units from [Beside] on.
func AppendEntry(b []byte, e *Entry) []byte {
	amounts := e.Amounts[:Beside]
	if !e.IsShort() {
		amounts = e.Amounts[:]
		b = binary.AppendUvarint(b, longEntry+uint64(Units))
	}
	for _, name := range [...]string{e.Project, e.Model, e.Key} {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	for _, n := range amounts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// Journal adds up entries in binary form. It reads the names of each owner once, however many entries
// there are. The zero Journal is empty.
type Journal struct {
	lines map[string]*Amounts // by the names of their owners in binary form
}

// Add adds entries that AppendEntry has appended one after another.
func (j *Journal) Add(b []byte) error {
	for len(b) > 0 {
		units := uint64(Beside)
		if n, size := binary.Uvarint(b); n > maxName {
			units, b = n-longEntry, b[size:]
		}
		_, after, err := readOwner(b)
		if err != nil {
			return err
		}
		line := j.line(b[:len(b)-len(after)])
		var n Amounts
		if b, err = n.read(after, units); err != nil {
			return err
		}
		line.Add(&n)
	}
	return nil
}

func (j *Journal) line(owner []byte) *Amounts {
	line := j.lines[string(owner)]
	if line == nil {
		if j.lines == nil {
			j.lines = map[string]*Amounts{}
		}
		line = new(Amounts)
		j.lines[string(owner)] = line
	}
	return line
}

// Each calls fn with the sum of the entries of each owner, until it returns an error.
func (j *Journal) Each(fn func(e *Entry) error) error {
	for names, amounts := range j.lines {
		owner, _, err := readOwner([]byte(names))
		if err != nil {
			return err
		}
		e := Entry{Amounts: *amounts}
		e.Project, e.Model, e.Key = string(owner[0]), string(owner[1]), string(owner[2])
		if err := fn(&e); err != nil {
			return err
		}
	}
	return nil
}

// readOwner reads the names of an owner. It returns the bytes after them.
func readOwner(b []byte) (names [3][]byte, rest []byte, err error) {
	for i := range names {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return names, nil, errEncoded
		}
		names[i], b = b[size:size+int(n)], b[size+int(n):]
	}
	return names, b, nil
}

// read reads the amounts of so many units, of which a newer version may have more. It returns the bytes after them.
func (a *Amounts) read(b []byte, units uint64) (rest []byte, err error) {
	for u := range units {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, errEncoded
		}
		if b = b[size:]; u < uint64(Units) {
			a[u] = int64(n)
		}
	}
	return b, nil
}
