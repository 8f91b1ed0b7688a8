package dialect

import (
	"encoding/binary"
	"hash/crc32"
)

// frames reads AWS's event stream format, in pieces split anywhere, and passes the payload of each
// message on as JSON. A message is its length, the length of its headers, a checksum of both, the
// headers, the payload, and a checksum of everything.
type frames struct {
	json     *values // tallies the content of the messages
	payloads *values // reads the payloads: json itself, or a reader that unpacks base64 into it

	head    [prelude + maxFrameHeaders]byte // the prelude and the first headers of the message
	at      int                             // how many bytes of the message were read
	headers int                             // where the headers of the message end
	payload int                             // where the payload of the message ends
	broken  bool                            // the stream has another format
}

const (
	prelude         = 12 // bytes: two lengths and a checksum
	frameEnd        = 4  // bytes of the checksum of a message
	maxFrame        = 24 << 20
	maxFrameHeaders = 512 // bytes of headers that are kept
)

// newFrames returns a reader of a stream. packed is the node of messages that hold their content in base64; nil: none do.
func newFrames(packed *node, json *values) *frames {
	f := &frames{json: json, payloads: json}
	if packed != nil {
		f.payloads = &values{top: packed, packed: &unpacker{into: json}}
	}
	return f
}

// read reads a piece of the stream.
func (f *frames) read(p []byte) {
	for len(p) > 0 {
		n, _ := f.next(p)
		p = p[n:]
	}
}

// next reads up to the end of a message, or else all of p. It returns how many bytes it has read, and whether the
// message has ended, or the stream has another format.
func (f *frames) next(p []byte) (read int, ended bool) {
	for read < len(p) && !f.broken {
		rest, n := p[read:], 0
		switch {
		case f.at < prelude:
			n = f.keep(rest, prelude)
			if f.at+n == prelude {
				f.begin()
			}
		case f.at < f.headers:
			n = f.keep(rest, f.headers)
		case f.at < f.payload:
			n = min(len(rest), f.payload-f.at)
			f.payloads.read(rest[:n])
		default:
			n = min(len(rest), f.payload+frameEnd-f.at)
		}
		f.at += n
		read += n
		if f.at >= prelude && f.at == f.payload+frameEnd {
			f.end()
			return read, true
		}
	}
	return len(p), f.broken
}

// keep stores the bytes of p that belong to the prelude or the headers, which end at end, and
// returns their number.
func (f *frames) keep(p []byte, end int) int {
	n := min(len(p), end-f.at)
	if f.at < len(f.head) {
		copy(f.head[f.at:], p[:n])
	}
	return n
}

// begin reads the prelude of a message.
func (f *frames) begin() {
	length := binary.BigEndian.Uint32(f.head[:])
	headers := binary.BigEndian.Uint32(f.head[4:])
	sum := binary.BigEndian.Uint32(f.head[8:])
	if length > maxFrame || headers > length || length-headers < prelude+frameEnd || sum != crc32.ChecksumIEEE(f.head[:8]) {
		f.broken = true
		return
	}
	f.headers = prelude + int(headers)
	f.payload = int(length) - frameEnd
}

// end ends a message. An error has its type in the headers.
func (f *frames) end() {
	kind := f.header(":exception-type")
	if kind == nil {
		kind = f.header(":error-code")
	}
	if fault := &f.json.fault; kind != nil && fault.n == 0 {
		fault.add(kind)
	}
	f.payloads.reset()
	f.json.reset()
	f.at = 0
}

// header returns the value of a header of the message if that is a string, or nil.
func (f *frames) header(name string) []byte {
	h := f.head[prelude:min(f.headers, len(f.head))]
	for len(h) > 0 {
		n := int(h[0])
		if len(h) < n+2 {
			return nil
		}
		found, kind := string(h[1:1+n]) == name, h[1+n]
		value, rest, ok := cutHeader(h[2+n:], kind)
		if !ok || found {
			return value
		}
		h = rest
	}
	return nil
}

// headerString is the type of a header that is a string.
const headerString = 7

// cutHeader cuts the value of a header off the headers that follow it. The value is nil unless it
// is a string.
func cutHeader(h []byte, kind byte) (value, rest []byte, ok bool) {
	sizes := [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16} // lengths of true, false, four integers, bytes, strings, times, UUIDs
	if int(kind) >= len(sizes) {
		return nil, nil, false
	}
	size := sizes[kind]
	if size < 0 {
		if len(h) < 2 {
			return nil, nil, false
		}
		size, h = int(binary.BigEndian.Uint16(h)), h[2:]
	}
	if len(h) < size {
		return nil, nil, false
	}
	if kind == headerString {
		value = h[:size]
	}
	return value, h[size:], true
}
