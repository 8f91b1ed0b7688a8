// Package batch reads the calls of a batch, and what they have used from its results, in the
// formats of OpenAI and Anthropic.
package batch

import (
	"bytes"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Lines splits what is written to it into lines. It has one line in memory at most.
type Lines struct {
	Each func(line []byte) error // gets each line that is not blank, which it must not keep
	Max  int                     // the most bytes of a line

	// Grow returns a buffer with room for so many bytes, or an error if there is no memory for it.
	// It may be nil.
	Grow func(buffer []byte, room int64) ([]byte, error)

	line   []byte // the beginning of a line
	number int    // of lines that have ended
	bytes  int64
	err    error // the first error; nothing is read after it
}

// Write reads the next bytes. After an error, it returns the same one again.
func (l *Lines) Write(p []byte) (int, error) {
	l.bytes += int64(len(p))
	for rest := p; l.err == nil && len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.keep(rest)
			break
		}
		if len(l.line) == 0 {
			l.end(rest[:end])
		} else {
			l.keep(rest[:end])
			if l.err == nil {
				l.end(l.line)
				l.line = l.line[:0]
			}
		}
		rest = rest[end+1:]
	}
	return len(p), l.err
}

// Bytes returns how many bytes were written.
func (l *Lines) Bytes() int64 { return l.bytes }

// Close reads a last line that has no end.
func (l *Lines) Close() error {
	if l.err == nil && len(l.line) > 0 {
		l.end(l.line)
		l.line = nil
	}
	return l.err
}

// keep appends to the line that has begun.
func (l *Lines) keep(part []byte) {
	need := len(l.line) + len(part)
	if need > l.Max {
		l.err = fmt.Errorf("ratelimit: line %d is longer than %d bytes", l.number+1, l.Max)
		return
	}
	if need > cap(l.line) && l.Grow != nil {
		l.line, l.err = l.Grow(l.line, int64(min(2*need, l.Max)))
		if l.err != nil {
			return
		}
	}
	l.line = append(l.line, part...)
}

// end ends a line.
func (l *Lines) end(line []byte) {
	l.number++
	if len(line) > l.Max {
		l.err = fmt.Errorf("ratelimit: line %d is longer than %d bytes", l.number, l.Max)
		return
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if err := l.Each(line); err != nil {
		l.err = fmt.Errorf("ratelimit: line %d: %s", l.number, message.Plain(err))
	}
}
