package dialect

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// The elements of WebM that matter.
const (
	webmSegment     = 0x18538067
	webmTracks      = 0x1654ae6b
	webmTrack       = 0xae
	webmAudio       = 0xe1
	webmRate        = 0xb5
	webmOutputRate  = 0x78b5
	webmCodec       = 0x86
	webmPrivate     = 0x63a2
	webmEncodings   = 0x6d80
	webmCluster     = 0x1f43b675
	webmSimpleBlock = 0xa3
	webmBlockGroup  = 0xa0
	webmBlock       = 0xa1
)

// webmTime adds up the packets of Opus or Vorbis, or the samples, in the blocks of a file with one track. Blocks with
// several packets, and other codecs, are not read.
func webmTime(b []byte) (sum audioTime, ok bool) {
	var codec string
	var private []byte
	var rate int64
	var timeOf func(packet []byte) audioTime
	ok = true
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
		case webmSegment, webmTracks, webmTrack, webmAudio, webmCluster, webmBlockGroup: // their elements follow
			continue
		}
		if unknown || size > uint64(len(b)) {
			return 0, false
		}
		content := b[:size]
		b = b[size:]
		switch id {
		case webmCodec:
			ok = codec == "" && timeOf == nil
			codec = string(content)
		case webmPrivate:
			private = content
		case webmRate:
			ok = rate == 0 && webmFloat(content) > 0
			rate = webmFloat(content)
		case webmEncodings, webmOutputRate: // the blocks are compressed, or some decoders take another rate
			ok = false
		case webmSimpleBlock, webmBlock:
			if timeOf == nil {
				timeOf = webmCodecTime(codec, private, rate)
			}
			ok = timeOf != nil && len(content) > 4 && content[0]&0x80 != 0 && content[3]&6 == 0
			if ok {
				sum = min(sum+timeOf(content[4:]), maxAudio)
			}
		}
	}
	return sum, ok && sum > 0 && clusters == 0
}

// webmCodecTime returns what measures the blocks of a codec, by what the track says of it, or nil if it is another one.
func webmCodecTime(codec string, private []byte, rate int64) func(packet []byte) audioTime {
	switch codec {
	case "A_OPUS":
		return opusTime
	case "A_VORBIS":
		if at := bytes.Index(private, []byte("\x01vorbis")); at >= 0 && bytes.Count(private, []byte("\x01vorbis")) == 1 {
			return oggCodec(private[at:])
		}
	case "A_PCM/INT/LIT", "A_PCM/INT/BIG", "A_PCM/FLOAT/IEEE":
		if rate > 0 {
			return func(packet []byte) audioTime { return samplesTime(int64(len(packet)), rate) } // a byte each, or more
		}
	}
	return nil
}

// webmFloat reads a number with a point, rounded down. It is 0 if it is none that a rate can be.
func webmFloat(b []byte) int64 {
	f := 0.0
	switch len(b) {
	case 4:
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		f = math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	if !(f >= 1 && f <= 768_000) {
		return 0
	}
	return int64(f)
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
