package dialect

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// How long audio is, by the bytes of its container. Lengths that a container declares can lie, so none of them counts:
// what counts is the frames that the bytes have, as a decoder finds them. Of what cannot be read, each byte counts as the
// longest sound that a codec can put into one.

// span of audio in billionths of a second.
type audioTime int64

const (
	audioSecond audioTime = 1_000_000_000
	mostInAByte           = audioSecond * 120 / 1000 // a packet of Opus that is silent: 120 milliseconds
	maxAudio              = audioSecond * 1_000_000  // more than any file has, so that sums do not overflow

	mostSamplesInAByte = 8 // of the codecs that WAV files have, with a rate of their own
)

// mostSeconds returns the most seconds of audio that a file can have, rounded up.
func mostSeconds(b []byte) int64 {
	d, ok := audioTime(0), false
	rest, understood := withoutTags(b)
	kind := containerOf(rest)
	if !understood {
		kind = ""
	}
	switch kind {
	case "wav":
		d, ok = wavTime(rest)
	case "mpeg":
		d, ok = mpegTime(b)
	case "flac":
		d, ok = flacTime(rest)
	case "ogg":
		d, ok = oggTime(rest)
	case "mp4":
		if d, ok = mp4Time(rest); !ok {
			d, ok = mp4Most(rest), true
		}
	case "webm":
		d, ok = webmTime(rest)
	}
	if !ok {
		d = leastKnown(b)
	}
	return max(int64((d+audioSecond-1)/audioSecond), 1)
}

// anyLength are the names of codecs in Matroska whose files choose how many samples a second they have, and FLAC, in which
// silence takes no room at all.
var anyLength = []string{"fLaC", "A_PCM", "A_VORBIS", "A_ALAC", "A_FLAC", "A_MS/ACM", "A_QUICKTIME", "A_TTA1", "A_WAVPACK4", "A_REAL"}

// leastKnown returns how long a file can be of which nothing is known.
func leastKnown(b []byte) audioTime {
	if slices.ContainsFunc(anyLength, func(codec string) bool { return bytes.Contains(b, []byte(codec)) }) {
		return maxAudio
	}
	return min(audioTime(min(int64(len(b)), int64(maxAudio/mostInAByte)))*mostInAByte, maxAudio)
}

// containerOf returns the format of a file by its first bytes, or "".
func containerOf(b []byte) string {
	head := make([]byte, 12)
	copy(head, b)
	switch {
	case startsWith(head, "RIFF") && startsWith(head[8:], "WAVE"):
		return "wav"
	case startsWith(head, "fLaC"):
		return "flac"
	case startsWith(head, "OggS"):
		return "ogg"
	case startsWith(head, "\x1a\x45\xdf\xa3"):
		return "webm"
	case startsWith(head[4:], "ftyp"):
		return "mp4"
	case head[0] == 0xff && head[1]&0xe0 == 0xe0:
		return "mpeg"
	}
	return ""
}

// samplesTime returns how long so many samples are at a rate.
func samplesTime(samples, rate int64) audioTime {
	if rate <= 0 || samples > int64(maxAudio)/int64(audioSecond)*8000 {
		return maxAudio
	}
	return min(audioTime((samples/rate)*int64(audioSecond)+((samples%rate)*int64(audioSecond)+rate-1)/rate), maxAudio)
}

// wavTime takes all bytes behind the format for samples, whatever length the file declares.
func wavTime(b []byte) (audioTime, bool) {
	at := 12
	for at+8 <= len(b) {
		size := int(binary.LittleEndian.Uint32(b[at+4:]))
		if string(b[at:at+4]) != "fmt " {
			if size < 0 || size > len(b) || string(b[at:at+4]) == "data" { // the samples come before their format
				return 0, false
			}
			at += 8 + size + size&1
			continue
		}
		if size < 16 || at+24 > len(b) || bytes.Count(b, []byte("fmt ")) != 1 {
			return 0, false
		}
		f := b[at+8:]
		format, channels, rate := binary.LittleEndian.Uint16(f), int64(binary.LittleEndian.Uint16(f[2:])), int64(binary.LittleEndian.Uint32(f[4:]))
		frame, depth := int64(binary.LittleEndian.Uint16(f[12:])), int64(binary.LittleEndian.Uint16(f[14:]))
		if rate <= 0 || rate > 768_000 {
			return 0, false
		}
		if format != 1 && format != 3 || frame == 0 || depth > 64 || frame != channels*((depth+7)/8) { // decoders differ in which of them they believe
			return max(samplesTime(int64(len(b))*mostSamplesInAByte, rate), leastKnown(b)), true
		}
		if at += 8 + size + size&1; at > len(b) {
			return 0, false
		}
		if bytes.HasPrefix(b[at:], []byte("data")) {
			at = min(at+8, len(b))
		}
		return samplesTime((int64(len(b)-at)+frame-1)/frame, rate), true
	}
	return 0, false
}

// Tables of the frames of MPEG: kbit/s of the layers III, II and I, of version 1 and of those before it, and samples a
// second by the version.
var (
	mpegRates = [2][3][16]int{
		{{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384}, {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448}},
		{{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}, {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}, {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256}},
	}
	mpegSamples = [4][4]int{{11025, 12000, 8000}, {}, {22050, 24000, 16000}, {44100, 48000, 32000}}
)

// mpegFrame returns the length of the frame of MPEG that begins at b, in bytes and in time. A frame that does not say its
// rate has a length of 0 bytes.
func mpegFrame(b []byte) (length int, d audioTime, ok bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return 0, 0, false
	}
	version, layer, older := b[1]>>3&3, int(b[1]>>1&3), 1
	if version == 3 {
		older = 0
	}
	hz, i := mpegSamples[version][b[2]>>2&3], b[2]>>4
	switch {
	case layer == 0:
		return adtsFrame(b)
	case hz == 0 || i == 15:
		return 0, 0, false
	}
	samples, unit := 1152, 1
	switch {
	case layer == 3:
		samples, unit = 384, 4
	case layer == 1 && older == 1:
		samples = 576
	}
	if kbit := mpegRates[older][layer-1][i]; kbit > 0 {
		length = (samples/8/unit*kbit*1000/hz + int(b[2]>>1&1)) * unit
	}
	return length, samplesTime(int64(samples), int64(hz)), true
}

// adtsFrame is mpegFrame of AAC.
func adtsFrame(b []byte) (length int, d audioTime, ok bool) {
	if len(b) < 7 || b[1]&0xf6 != 0xf0 || int(b[2]>>2&15) >= len(aacRates) {
		return 0, 0, false
	}
	length = int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5]>>5)
	return length, samplesTime(1024*int64(b[6]&3+1), aacRates[b[2]>>2&15]), length >= 7
}

// mpegTime adds up the frames of a file, which follow one another from behind its tags to the end and are of one kind. If
// they do not, or if others follow one another in between, it adds up whatever looks like one, since a decoder may find
// any of these.
func mpegTime(file []byte) (sum audioTime, ok bool) {
	b, _ := withoutTags(file)
	if _, _, ok := mpegFrame(b); !ok {
		return 0, false
	}
	var frames []int // where they begin
	at := len(file) - len(b)
	for first := mpegKind(b); at < len(file); {
		length, d, ok := mpegFrame(file[at:])
		if !ok || length < 4 || mpegKind(file[at:]) != first {
			break
		}
		frames = append(frames, at)
		at, sum = at+length, min(sum+d, maxAudio)
	}
	whole := at >= len(file) || at == len(file)-128 && bytes.HasPrefix(file[at:], []byte("TAG"))
	if whole && !hidesFrames(file, frames) {
		return sum, true
	}
	sum = 0
	for i := range file {
		if _, d, ok := mpegFrame(file[i:]); ok {
			sum = min(sum+d, maxAudio)
		}
	}
	return sum, true
}

// mpegKind returns what all frames of a file have in common: the version, the layer and the samples a second.
func mpegKind(b []byte) [2]byte { return [2]byte{b[1] & 0xfe, b[2] & 0x0c} }

// pairsByChance is how often one thing that looks like a frame of MPEG may follow another in a large file without a
// meaning: one in twenty files of 25 MB has one such pair.
const pairsByChance = 8

// hidesFrames reports whether frames of MPEG follow one another in a file elsewhere than at places that are known.
func hidesFrames(b []byte, known []int) bool {
	isNew := func(at int) bool {
		_, found := slices.BinarySearch(known, at)
		return !found
	}
	pairs := 0
	for at := 0; at < len(b); at++ {
		next := bytes.IndexByte(b[at:], 0xff)
		if next < 0 {
			return false
		}
		at += next
		length, _, ok := mpegFrame(b[at:])
		if !ok || length < 4 || at+length >= len(b) {
			continue
		}
		_, _, follows := mpegFrame(b[at+length:])
		if follows && mpegKind(b[at:]) == mpegKind(b[at+length:]) && isNew(at) && isNew(at+length) {
			if pairs++; pairs > pairsByChance {
				return true
			}
		}
	}
	return false
}

// withoutTags returns a file behind the tags at its beginning (ID3), and the zeros behind these. ok is false if there is
// one whose size no decoder understands.
func withoutTags(b []byte) (rest []byte, ok bool) {
	for len(b) > 10 && bytes.HasPrefix(b, []byte("ID3")) {
		if (b[6]|b[7]|b[8]|b[9])&0x80 != 0 || b[3] == 0xff || b[4] == 0xff {
			return nil, false
		}
		size := 10 + (int(b[6])<<21 | int(b[7])<<14 | int(b[8])<<7 | int(b[9]))
		if b[5]&0x10 != 0 { // the tag has an end like its beginning
			size += 10
		}
		b = bytes.TrimLeft(b[min(size, len(b)):], "\x00")
	}
	return b, true
}

// flacTime adds up whatever looks like the header of a frame and has its checksum. A frame that names another rate than
// the file may have either.
func flacTime(b []byte) (sum audioTime, ok bool) {
	if len(b) < 42 || b[4]&0x7f != 0 {
		return 0, false
	}
	sum = flacFrames(b[42:], int64(b[18])<<12|int64(b[19])<<4|int64(b[20])>>4)
	return sum, sum > 0
}

// flacFrames adds up the frames of a text, in a file with a rate.
func flacFrames(b []byte, usual int64) (sum audioTime) {
	for i := 0; i+6 <= len(b); i++ {
		if b[i] != 0xff || b[i+1]&0xfe != 0xf8 {
			continue
		}
		if samples, rate, ok := flacFrame(b[i:min(i+20, len(b))]); ok {
			if rate == 0 || usual > 0 {
				rate = min(cmp.Or(rate, usual), usual)
			}
			sum = min(sum+samplesTime(samples, rate), maxAudio)
		}
	}
	return sum
}

// flacFrame returns how many samples a frame has, and their rate: 0 is that of the file.
func flacFrame(h []byte) (samples, rate int64, ok bool) {
	at := 5
	for lead := h[4]; lead&0x80 != 0 && lead&0x40 != 0; lead <<= 1 { // the number of the frame, in the manner of UTF-8
		at++
	}
	read := func(n int) (v int64) {
		for range n {
			if at < len(h) {
				v = v<<8 | int64(h[at])
			}
			at++
		}
		return v
	}
	switch size := h[2] >> 4; {
	case size == 0:
		return 0, 0, false
	case size == 1:
		samples = 192
	case size <= 5:
		samples = 576 << (size - 2)
	case size == 6:
		samples = read(1) + 1
	case size == 7:
		samples = read(2) + 1
	default:
		samples = 256 << (size - 8)
	}
	rates := [...]int64{0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000}
	switch code := int(h[2] & 15); {
	case code < len(rates):
		rate = rates[code]
	case code == 12:
		rate = max(read(1)*1000, 1)
	case code == 13:
		rate = max(read(2), 1)
	case code == 14:
		rate = max(read(2)*10, 1)
	default:
		return 0, 0, false
	}
	return samples, rate, at < len(h) && crc8(h[:at]) == h[at]
}

func crc8(b []byte) (sum byte) {
	for _, c := range b {
		sum ^= c
		for range 8 {
			carry := sum & 0x80
			if sum <<= 1; carry != 0 {
				sum ^= 7
			}
		}
	}
	return sum
}

// opusTime returns how long a packet of Opus is.
func opusTime(packet []byte) audioTime {
	if len(packet) == 0 { // some decoders fill a gap with the longest frame
		return mostInAByte
	}
	const ms = audioSecond / 1000
	config, frames := packet[0]>>3, audioTime(1)
	switch packet[0] & 3 {
	case 1, 2:
		frames = 2
	case 3:
		if len(packet) > 1 {
			frames = audioTime(packet[1] & 63)
		}
	}
	each := [...]audioTime{10 * ms, 20 * ms, 40 * ms, 60 * ms}[config&3]
	switch {
	case config >= 16:
		each = [...]audioTime{5 * ms / 2, 5 * ms, 10 * ms, 20 * ms}[config&3]
	case config >= 12:
		each = [...]audioTime{10 * ms, 20 * ms}[config&1]
	}
	return frames * each
}

// oggTime adds up the packets of Opus, Vorbis or FLAC in pages of one stream that follow one another. A page in another
// one may be found by a decoder that does not believe the outer one.
func oggTime(b []byte) (sum audioTime, ok bool) {
	if len(b) < 27 {
		return 0, false
	}
	var packet []byte
	var timeOf func(packet []byte) audioTime
	stream, pages := b[14:18], bytes.Count(b, []byte("OggS"))
	for first := true; len(b) > 0; pages-- {
		if len(b) < 27 || string(b[:4]) != "OggS" || len(b) < 27+int(b[26]) || !bytes.Equal(b[14:18], stream) {
			return 0, false
		}
		lacing, data := b[27:27+int(b[26])], b[27+int(b[26]):]
		for _, size := range lacing {
			if int(size) > len(data) {
				return 0, false
			}
			packet, data = append(packet, data[:size]...), data[size:]
			if size == 255 {
				continue
			}
			switch {
			case !first:
				sum = min(sum+timeOf(packet), maxAudio)
			default:
				if timeOf = oggCodec(packet); timeOf == nil {
					return 0, false
				}
				first = false
			}
			packet = packet[:0]
		}
		b = data
	}
	return sum, sum > 0 && pages == 0
}

// oggCodec returns what measures the packets of a stream of Ogg, by its first packet, or nil if it is of another codec.
func oggCodec(head []byte) func(packet []byte) audioTime {
	switch {
	case bytes.HasPrefix(head, []byte("OpusHead")):
		return func(packet []byte) audioTime {
			if bytes.HasPrefix(packet, []byte("OpusTags")) {
				return 0
			}
			return opusTime(packet)
		}
	case bytes.HasPrefix(head, []byte("\x01vorbis")) && len(head) >= 30: // no packet is longer than half of the larger block
		each := samplesTime(1<<(head[28]>>4)/2, int64(binary.LittleEndian.Uint32(head[12:])))
		return func(packet []byte) audioTime {
			if len(packet) > 0 && packet[0]&1 != 0 { // a header
				return 0
			}
			return each
		}
	case bytes.HasPrefix(head, []byte("\x7fFLAC")) && len(head) >= 9+42:
		usual := int64(head[27])<<12 | int64(head[28])<<4 | int64(head[29])>>4
		return func(packet []byte) audioTime { return flacFrames(packet, usual) }
	}
	return nil
}
