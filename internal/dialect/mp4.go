package dialect

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"slices"
)

// mp4Time counts the frames of AAC in the only track of a file. Their rate is in the decoder's own settings, which must
// be where the only description of samples has them.
func mp4Time(b []byte) (audioTime, bool) {
	sizes, settings := bytes.Index(b, []byte("stsz")), bytes.Index(b, []byte("esds"))
	for _, box := range []string{"stsz", "esds", "stsd"} {
		if bytes.Count(b, []byte(box)) != 1 {
			return 0, false
		}
	}
	if bytes.Count(b, []byte("elst")) > 1 {
		return 0, false
	}
	described := settings >= 52 && string(b[settings-52:settings-48]) == "stsd" && string(b[settings-36:settings-32]) == "mp4a"
	elsewhere := slices.ContainsFunc([]string{"moof", "stz2", "cmov"}, func(box string) bool { return bytes.Contains(b, []byte(box)) }) // frames that stsz does not count
	if !described || elsewhere || sizes+16 > len(b) || settings+8 > len(b) {
		return 0, false
	}
	rate, ok := aacRate(b[settings+8:])
	each, frames := binary.BigEndian.Uint32(b[sizes+8:]), int64(binary.BigEndian.Uint32(b[sizes+12:]))
	if !ok || frames <= 0 || each == 0 && frames > int64(len(b)) { // each frame has an entry of its own
		return 0, false
	}
	edits := int64(1) // each may repeat all frames
	if at := bytes.Index(b, []byte("elst")); at >= 0 && at+12 <= len(b) {
		edits = max(int64(min(binary.BigEndian.Uint32(b[at+8:]), math.MaxInt16)), 1)
	}
	return samplesTime(frames*1024*edits, rate), true
}

// aacRates are the samples a second that AAC can have.
var aacRates = [...]int64{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350}

// aacRate reads how many samples a second AAC has from the descriptors of a stream, one of which is in another.
func aacRate(b []byte) (rate int64, ok bool) {
	for _, d := range []struct{ tag, fixed byte }{{3, 3}, {4, 13}, {5, 0}} {
		if len(b) < 2 || b[0] != d.tag {
			return 0, false
		}
		for b = b[1:]; len(b) > 0 && b[0] == 0x80; { // the length has four bytes
			b = b[1:]
		}
		if len(b) < 3+int(d.fixed) || d.tag == 4 && b[1] != 0x40 {
			return 0, false
		}
		b = b[1+d.fixed:]
	}
	kind, i := b[0]>>3, int(b[0]&7)<<1|int(b[1]>>7)
	if kind != 2 && kind != 5 && kind != 29 || i >= len(aacRates) {
		return 0, false
	}
	return aacRates[i], true
}

// What descriptions of samples may name: codecs of which each frame lasts a bounded time, and what is no sound; and samples
// without a codec, whose length the file's own rate says.
var (
	mp4Framed = []string{"mp4a", "Opus", "ac-3", "ec-3", ".mp3", "samr", "sawb", "avc1", "avc3", "hvc1", "hev1", "vp08", "vp09", "av01", "mp4v", "tmcd", "tx3g", "text", "mett", "mebx"}
	mp4Plain  = []string{"sowt", "twos", "raw ", "in24", "in32", "fl32", "fl64", "ipcm", "fpcm", "lpcm"}
)

const longestFrame = audioSecond * 150 / 1000 // one of MP3, 8,000 samples a second, is 144 milliseconds long

// mp4Most returns how long a file can be that is not of the usual form: as long as its bytes, or all samples that its
// tables count, which may lie in the same bytes. A codec that is not known may have a sample a second, or fewer.
func mp4Most(b []byte) audioTime {
	rate := int64(math.MaxInt32) // the lowest that plain samples have; the highest number: there are none
	for at := range boxes(b, "stsd", 48) {
		format := string(b[at+16 : at+20])
		switch {
		case binary.BigEndian.Uint32(b[at+8:]) != 1:
			return maxAudio
		case slices.Contains(mp4Plain, format):
			rate = min(rate, int64(binary.BigEndian.Uint32(b[at+44:])>>16))
		case !slices.Contains(mp4Framed, format):
			return maxAudio
		}
	}
	if bytes.Contains(b, []byte("cmov")) { // the descriptions are compressed
		return maxAudio
	}
	samples := mp4Samples(b)
	if rate == math.MaxInt32 {
		return max(leastKnown(b), min(audioTime(min(samples, int64(maxAudio/longestFrame)))*longestFrame, maxAudio))
	}
	for at := range boxes(b, "mdhd", 32) { // some decoders count in the units of the track
		units := at + 16
		if b[at+4] == 1 {
			units = at + 24
		}
		rate = min(rate, int64(binary.BigEndian.Uint32(b[units:])))
	}
	edits := int64(1)
	for at := range boxes(b, "elst", 12) { // each may repeat all samples
		edits = min(edits+int64(binary.BigEndian.Uint32(b[at+8:])), math.MaxInt32) // so that the product does not overflow
	}
	return samplesTime(min(max(samples, int64(len(b))), math.MaxInt32)*edits, rate)
}

// mp4Samples returns how many samples the tables of a file count together.
func mp4Samples(b []byte) (sum int64) {
	for at := range boxes(b, "stsz", 16) {
		n := int64(binary.BigEndian.Uint32(b[at+12:]))
		if binary.BigEndian.Uint32(b[at+8:]) == 0 { // each has an entry of its own
			n = min(n, int64(len(b))/4)
		}
		sum += n
	}
	for at := range boxes(b, "stz2", 16) {
		sum += min(int64(binary.BigEndian.Uint32(b[at+12:])), int64(len(b))*2)
	}
	if !bytes.Contains(b, []byte("moof")) {
		return sum
	}
	for at := range boxes(b, "trun", 12) {
		sum += int64(binary.BigEndian.Uint32(b[at+8:]))
	}
	return sum
}

// boxes returns the offsets in b at which a decoder may find the name of a box, if b has at least size bytes from there
// on, the name included.
func boxes(b []byte, name string, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; ; {
			i := bytes.Index(b[from:], []byte(name))
			if i < 0 || from+i+size > len(b) || !yield(from+i) {
				return
			}
			from += i + len(name)
		}
	}
}
