package llm

import (
	"bytes"
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
)

// mostSeconds returns the most seconds of audio that a file can have, rounded up.
func mostSeconds(b []byte) int64 {
	d, ok := audioTime(0), false
	switch kind := containerOf(b); kind {
	case "wav":
		d, ok = wavTime(b)
	case "mpeg":
		d, ok = mpegTime(b)
	case "flac":
		d, ok = flacTime(b)
	case "ogg":
		d, ok = oggTime(b)
	case "mp4":
		d, ok = mp4Time(b)
	case "webm":
		d, ok = webmTime(b)
	}
	if !ok {
		d = min(audioTime(min(int64(len(b)), int64(maxAudio/mostInAByte)))*mostInAByte, maxAudio)
	}
	return max(int64((d+audioSecond-1)/audioSecond), 1)
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
	case startsWith(head, "ID3") || head[0] == 0xff && head[1]&0xe0 == 0xe0:
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
		format, channels, rate, depth := binary.LittleEndian.Uint16(f), int64(binary.LittleEndian.Uint16(f[2:])), int64(binary.LittleEndian.Uint32(f[4:])), int64(binary.LittleEndian.Uint16(f[14:]))
		frame := channels * depth / 8
		if format != 1 && format != 3 || frame <= 0 || rate <= 0 || rate > 768_000 {
			return 0, false
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

// mpegTime adds up the frames of a file. If they do not follow one another from the beginning to the end, it adds up
// whatever looks like one, since a decoder may find any of these. A file that begins with none, behind its tags, is
// something else.
func mpegTime(b []byte) (sum audioTime, ok bool) {
	b = withoutTags(b)
	if _, _, ok := mpegFrame(b); !ok {
		return 0, false
	}
	at := 0
	for at < len(b) {
		length, d, ok := mpegFrame(b[at:])
		if !ok || length == 0 {
			break
		}
		at, sum = at+length, min(sum+d, maxAudio)
	}
	if rest := len(b) - at; rest <= 0 || rest == 128 && bytes.HasPrefix(b[at:], []byte("TAG")) {
		return sum, true
	}
	sum = 0
	for i := range b {
		if _, d, ok := mpegFrame(b[i:]); ok {
			sum = min(sum+d, maxAudio)
		}
	}
	return sum, true
}

// withoutTags returns a file behind the tags at its beginning (ID3), and the zeros behind these.
func withoutTags(b []byte) []byte {
	for len(b) > 10 && bytes.HasPrefix(b, []byte("ID3")) {
		size := 10 + (int(b[6]&0x7f)<<21 | int(b[7]&0x7f)<<14 | int(b[8]&0x7f)<<7 | int(b[9]&0x7f))
		if b[5]&0x10 != 0 { // the tag has an end like its beginning
			size += 10
		}
		b = bytes.TrimLeft(b[min(size, len(b)):], "\x00")
	}
	return b
}

// flacTime adds up whatever looks like the header of a frame and has its checksum.
func flacTime(b []byte) (sum audioTime, ok bool) {
	if len(b) < 42 {
		return 0, false
	}
	usual := int64(b[18])<<12 | int64(b[19])<<4 | int64(b[20])>>4
	for i := 42; i+6 <= len(b); i++ {
		if b[i] != 0xff || b[i+1]&0xfe != 0xf8 {
			continue
		}
		if samples, rate, ok := flacFrame(b[i:min(i+20, len(b))]); ok {
			if rate == 0 {
				rate = usual
			}
			sum = min(sum+samplesTime(samples, rate), maxAudio)
		}
	}
	return sum, sum > 0
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
	if len(packet) == 0 {
		return 0
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

// oggTime adds up the packets of Opus in pages of one stream that follow one another. Other codecs are not read.
func oggTime(b []byte) (sum audioTime, ok bool) {
	if len(b) < 27 {
		return 0, false
	}
	var packet []byte
	stream := b[14:18]
	for n := 0; len(b) > 0; {
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
			switch n++; {
			case bytes.HasPrefix(packet, []byte("OpusHead")), bytes.HasPrefix(packet, []byte("OpusTags")):
			case n == 1: // another codec
				return 0, false
			default:
				sum = min(sum+opusTime(packet), maxAudio)
			}
			packet = packet[:0]
		}
		b = data
	}
	return sum, sum > 0
}

// mp4Time counts the frames of AAC in the only track of a file. Their rate is in the decoder's own settings, which must
// be where the only description of samples has them.
func mp4Time(b []byte) (audioTime, bool) {
	sizes, settings := bytes.Index(b, []byte("stsz")), bytes.Index(b, []byte("esds"))
	for _, box := range []string{"stsz", "esds", "stsd"} {
		if bytes.Count(b, []byte(box)) != 1 {
			return 0, false
		}
	}
	described := settings >= 52 && string(b[settings-52:settings-48]) == "stsd" && string(b[settings-36:settings-32]) == "mp4a"
	elsewhere := slices.ContainsFunc([]string{"moof", "stz2", "cmov"}, func(box string) bool { return bytes.Contains(b, []byte(box)) }) // frames that stsz does not count
	if !described || elsewhere || sizes+16 > len(b) || settings+8 > len(b) {
		return 0, false
	}
	rate, ok := aacRate(b[settings+8:])
	frames := int64(binary.BigEndian.Uint32(b[sizes+12:]))
	if !ok || frames <= 0 || frames > int64(len(b)) { // a frame has a byte at least
		return 0, false
	}
	return samplesTime(frames*1024, rate), true
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
