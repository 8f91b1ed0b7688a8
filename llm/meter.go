package llm

import (
	"io"
	"net/http"
	"strings"
)

// Meter reads what a response has used from its body as it passes, whole or
// streamed, in pieces of any size. It keeps a few kilobytes at most, and some tens
// of them of a body that is compressed. Make one with NewMeter, and call Usage when
// the body ends, however it does. It may be used by one goroutine at a time.
type Meter struct {
	api    API
	format format
	stream events
	header http.Header // that may tell usage; nil: it does not
	frames *frames     // nil unless the body is made of them
	gunzip *gunzip     // nil unless the body is compressed
}

// format is how the values of a body follow one another.
type format uint8

const (
	formatUnknown format = iota // as long as nothing has come but space
	formatValues                // one after another, or in an array
	formatEvents                // as server-sent events
	formatFrames                // in AWS's event stream format
	formatOpaque                // in a way that cannot be read
)

// NewMeter returns a meter of the body of a response with such headers. The format
// shows in the body itself. One that is compressed is read if it is with gzip.
func NewMeter(api API, h http.Header) *Meter {
	m := &Meter{api: api}
	m.stream.json.top = topOf(api)
	if api == Invoke {
		m.header = h
	}
	switch strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")) {
	case "", "identity":
	case "gzip", "x-gzip":
		m.gunzip = new(gunzip)
	default:
		m.format = formatOpaque
	}
	return m
}

// Expect says how many answers were asked for, where it is more than one: totals that a
// stream tells beside their pieces are exact once all have ended.
func (m *Meter) Expect(answers int) { m.stream.json.asked = answers }

// Write reads a piece of the body. It never fails.
func (m *Meter) Write(p []byte) (int, error) {
	if m.gunzip != nil {
		m.gunzip.write(p, m.read)
	} else {
		m.read(p)
	}
	return len(p), nil
}

// read reads a piece of the body that is not compressed.
func (m *Meter) read(p []byte) {
	p = p[m.sniff(p):]
	switch m.format {
	case formatValues:
		m.stream.json.read(p)
	case formatFrames:
		m.frames.read(p)
	case formatEvents:
		for len(p) > 0 {
			n, ended := m.stream.next(p)
			if ended {
				m.stream.end()
			}
			p = p[n:]
		}
	}
}

// sniff finds the format by the first byte that tells it, and returns how much of p
// is before that: space, or a byte order mark.
func (m *Meter) sniff(p []byte) int {
	if m.format != formatUnknown {
		return 0
	}
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			continue
		case '{', '[':
			m.format = formatValues
		default:
			m.format = formatEvents
		}
		if c == 0 && m.stream.json.top == nodeBedrock { // the length of a frame, whose first byte is always 0
			m.format, m.frames = formatFrames, newFrames(m.api, &m.stream.json)
		}
		return i
	}
	return len(p)
}

// Usage returns what was used, by all that was written. What is written after that
// does not count.
func (m *Meter) Usage() Usage {
	if m.gunzip != nil {
		m.gunzip.stop()
	}
	json := &m.stream.json
	if m.format == formatValues && json.shape.values == 1 && !json.shape.array {
		json.running = false // it is a whole response, whether or not it says that its answers have ended
	}
	json.readHeaders(m.header)
	u := json.usage(json.unfinished())
	if !m.api.generates() && u.Input >= 0 {
		u.Output, u.Exact = 0, true
	}
	return u
}

// Fault returns the type or the code of an error that a stream has told after it
// had begun, such as "overloaded_error", or "". Ask for Usage first.
func (m *Meter) Fault() string { return string(m.stream.json.fault.bytes()) }

// Hide returns a reader of a stream without the chunk that tells nothing but
// usage. A chunk that has more, such as llama.cpp's timings, stays, and so does that of a
// server that tells usage beside its answers, too. What is read through it, the meter reads. A stream that is compressed is
// read as it is.
func (m *Meter) Hide(stream io.Reader) io.Reader {
	if m.gunzip != nil || m.format == formatOpaque {
		return io.TeeReader(stream, m)
	}
	m.stream.json.hides = true
	return &hider{meter: m, stream: stream}
}
