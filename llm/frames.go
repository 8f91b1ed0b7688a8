package llm

import (
	"encoding/binary"
	"hash/crc32"
)

// frames reads a stream in AWS's event stream format, in pieces split anywhere, and has
// the payload of each message read as JSON. A message is its length, the length of its
// headers and a checksum of both, then the headers, the payload, and a checksum of all.
type frames struct {
	json     *values // tallies what the messages tell
	payloads *values // reads them: json itself, or what unpacks them for it

	head    [prelude + maxFrameHeaders]byte // what was kept of the prelude and the headers
	at      int                             // bytes of the message that were read
	headers int                             // where the headers of the message end
	payload int                             // where its payload ends
	broken  bool                            // it is no such stream
}

const (
	prelude         = 12 // bytes: two lengths and a checksum
	frameEnd        = 4  // bytes of the checksum of a message
	maxFrame        = 24 << 20
	maxFrameHeaders = 512 // bytes of headers that are looked at
)

// newFrames returns a reader of a stream of one of Bedrock's APIs, whose values json reads.
func newFrames(api API, json *values) *frames {
	f := &frames{json: json, payloads: json}
	if api == Invoke {
		f.payloads = &values{top: nodeChunk, packed: &unpacker{into: json}}
	}
	return f
}

// read reads a piece of the stream.
func (f *frames) read(p []byte) {
	for len(p) > 0 && !f.broken {
		var n int
		switch {
		case f.at < prelude:
			n = f.keep(p, prelude)
			if f.at+n == prelude {
				f.begin()
			}
		case f.at < f.headers:
			n = f.keep(p, f.headers)
		case f.at < f.payload:
			n = min(len(p), f.payload-f.at)
			f.payloads.read(p[:n])
		default:
			n = min(len(p), f.payload+frameEnd-f.at)
		}
		f.at += n
		if f.at >= prelude && f.at == f.payload+frameEnd {
			f.end()
		}
		p = p[n:]
	}
}

// keep keeps what of p belongs to the prelude or the headers, which end at end, and
// returns how much of p that is.
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

// end ends a message. One that is an error tells its type in its headers.
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

// header returns the value of a header of the message that is a string, or nil.
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

// headerString is the type of headers that are strings.
const headerString = 7

// cutHeader cuts the value of a header of a type off what stands before the next header.
// The value is nil unless it is a string.
func cutHeader(h []byte, kind byte) (value, rest []byte, ok bool) {
	sizes := [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16} // of true, false, numbers, bytes, strings, times, UUIDs
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
