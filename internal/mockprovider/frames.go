package mockprovider

import (
	"encoding/binary"
	"hash/crc32"
)

// The framings of Bedrock's streams.
var (
	converseFrames = framing{contentType: eventStream, frame: func(e event) []byte { return frameOf(e, e.name, e.data) }}
	invokeFrames   = framing{contentType: eventStream, frame: func(e event) []byte {
		if e.exception {
			return frameOf(e, e.name, e.data)
		}
		return frameOf(e, "chunk", object{"bytes": encode(e.data), "p": "abcdefgh"}) // the bytes become base64
	}}
)

const eventStream = "application/vnd.amazon.eventstream"

// frameOf returns an event or an error, with its type, as a message in AWS's event stream format:
// two lengths and their checksum, headers, the payload, and a checksum of everything.
func frameOf(e event, kind string, data object) []byte {
	headers := frameHeader(nil, ":content-type", "application/json")
	if e.exception {
		headers = frameHeader(headers, ":exception-type", kind)
		headers = frameHeader(headers, ":message-type", "exception")
	} else {
		headers = frameHeader(headers, ":event-type", kind)
		headers = frameHeader(headers, ":message-type", "event")
	}
	payload := encode(data)
	f := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

// frameHeader appends a header that is a string, which is type 7.
func frameHeader(to []byte, name, value string) []byte {
	to = append(append(append(to, byte(len(name))), name...), 7)
	to = binary.BigEndian.AppendUint16(to, uint16(len(value)))
	return append(to, value...)
}
