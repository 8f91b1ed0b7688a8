package llm

import (
	"bytes"
	"math/bits"
)

// The elements of WebM that matter.
const (
	webmSegment     = 0x18538067
	webmTracks      = 0x1654ae6b
	webmTrack       = 0xae
	webmCodec       = 0x86
	webmEncodings   = 0x6d80
	webmCluster     = 0x1f43b675
	webmSimpleBlock = 0xa3
	webmBlockGroup  = 0xa0
	webmBlock       = 0xa1
)

// webmTime adds up the packets of Opus in the blocks of a file. Blocks with several packets, and other codecs, are not
// read.
func webmTime(b []byte) (sum audioTime, ok bool) {
	opus, ok := false, true
	clusters := bytes.Count(b, []byte{0x1f, 0x43, 0xb6, 0x75}) // a decoder may look for others than those that follow one another
	for len(b) > 0 && ok {
		var id, size uint64
		var n int
		if id, n = webmNumber(b, 4, true); n == 0 {
			return 0, false
		}
		b = b[n:]
		if size, n = webmNumber(b, 8, false); n == 0 {
			return 0, false
		}
		unknown := size == 1<<(7*n)-1
		b = b[n:]
		if id == webmCluster {
			clusters--
		}
		switch id {
		case webmSegment, webmTracks, webmTrack, webmCluster, webmBlockGroup: // their elements follow
			continue
		}
		if unknown || size > uint64(len(b)) {
			return 0, false
		}
		content := b[:size]
		b = b[size:]
		switch id {
		case webmCodec:
			opus, ok = true, string(content) == "A_OPUS"
		case webmEncodings: // the blocks are compressed
			ok = false
		case webmSimpleBlock, webmBlock:
			ok = opus && len(content) > 4 && content[0]&0x80 != 0 && content[3]&6 == 0
			if ok {
				sum = min(sum+opusTime(content[4:]), maxAudio)
			}
		}
	}
	return sum, ok && sum > 0 && clusters == 0
}

// webmNumber reads a number of up to so many bytes, whose first byte says how many there are. A mark of that is a part
// of an id, and not of a size.
func webmNumber(b []byte, most int, marked bool) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	n = bits.LeadingZeros8(b[0]) + 1
	if n > most || n > len(b) {
		return 0, 0
	}
	v = uint64(b[0])
	if !marked {
		v &= 1<<(8-n) - 1
	}
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n
}
