package dialect

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// wav returns a WAV file of 8,000 samples a second, a byte each, that declares a length of its own.
func wav(seconds int, declared uint32) []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, 8000)
	b = binary.LittleEndian.AppendUint32(b, 1) // bytes a second, which lies
	b = append(b, "\x01\x00\x08\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, declared)
	return append(b, make([]byte, 8000*seconds)...)
}

// mp3 returns frames of 128 kbit/s and 44,100 samples a second, of which 38.28 are a second.
func mp3(frames int) []byte {
	frame := append([]byte{0xff, 0xfb, 0x90, 0x00}, make([]byte, 413)...)
	return bytes.Repeat(frame, frames)
}

// noisy returns the same frames with contents as if they were compressed.
func noisy(frames int) []byte {
	b, random := mp3(frames), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		if i%417 >= 4 {
			b[i] = byte(random.Uint32())
		}
	}
	return b
}

// vorbis returns packets of Vorbis in Ogg, 64 milliseconds each.
func vorbis(packets int) []byte {
	head := append([]byte("\x01vorbis\x00\x00\x00\x00\x01\x80\x3e\x00\x00"), make([]byte, 12)...) // 16,000 samples a second
	b := oggPage(append(head, 0xb8, 1), []byte("\x03vorbis"), []byte("\x05vorbis"))
	return append(b, oggPage(slices.Repeat([][]byte{make([]byte, 30)}, packets)...)...)
}

// ogg returns packets of Opus, 50 a page, that are 20 milliseconds each. Its pages say that they have no samples.
func ogg(packets int) (b []byte) {
	page := func(list ...[]byte) {
		b = append(append(b, "OggS"...), make([]byte, 22)...)
		b = append(b, byte(len(list)))
		for _, p := range list {
			b = append(b, byte(len(p)))
		}
		b = append(b, bytes.Join(list, nil)...)
	}
	page([]byte("OpusHead\x01\x01\x00\x00\x80\xbb\x00\x00\x00\x00\x00"))
	page([]byte("OpusTags\x00\x00\x00\x00\x00\x00\x00\x00"))
	all := slices.Repeat([][]byte{append([]byte{0x98}, make([]byte, 40)...)}, packets)
	for some := range slices.Chunk(all, 50) {
		page(some...)
	}
	return b
}

// flac returns frames of 4,096 samples, 16,000 a second. It declares that it has one sample.
func flac(frames int) []byte {
	b := append([]byte("fLaC\x80\x00\x00\x22\x10\x00\x10\x00\x00\x00\x00\x00\x00\x00\x03\xe8\x00\xf0\x00\x00\x00\x01"), make([]byte, 16)...)
	for i := range frames {
		h := []byte{0xff, 0xf8, 0xc5, 0x08, byte(i % 128)}
		b = append(append(append(b, h...), crc8(h)), 1, 2, 3, 4, 5, 6)
	}
	return b
}

// box returns a box of MP4.
func box(kind string, content ...[]byte) []byte {
	all := bytes.Join(content, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(all)+8)), kind...), all...)
}

// mp4 returns a file with frames of AAC, 16,000 samples a second. Its header declares no length at all.
func mp4(frames uint32) []byte {
	settings := box("esds", []byte("\x00\x00\x00\x00\x03\x19\x00\x00\x00\x04\x11\x40\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x02\x14\x08\x06\x01\x02"))
	entry := box("mp4a", make([]byte, 28), settings)
	stsd := box("stsd", []byte{0, 0, 0, 0, 0, 0, 0, 1}, entry)
	stsz := box("stsz", make([]byte, 8), binary.BigEndian.AppendUint32(nil, frames), make([]byte, 4*frames))
	return slices.Concat(box("ftyp", []byte("M4A isom")), box("moov", box("mvhd", make([]byte, 100)), stsd, stsz), box("mdat", make([]byte, 64*frames)))
}

// webm returns blocks of Opus, 60 milliseconds each, in a cluster of unknown length.
func webm(blocks int) []byte {
	b := []byte("\x1a\x45\xdf\xa3\x84webm\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x16\x54\xae\x6b\x8a\xae\x88\x86\x86A_OPUS\x1f\x43\xb6\x75\xff")
	for range blocks {
		b = append(b, 0xa3, 0x86, 0x81, 0, 0, 0x80, 0x18, 7) // SILK, 60 ms
	}
	return b
}

// How long audio is follows from its frames, whatever its container declares.
func TestMostSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want int64
	}{
		"wav":                             {wav(60, 60*8000), 60},
		"wav that declares nothing":       {wav(60, 0), 60},
		"wav that declares all":           {wav(60, 0xffffffff), 60},
		"mp3":                             {mp3(383), 11}, // 10.005 seconds
		"mp3 with a tag":                  {append([]byte("ID3\x04\x00\x00\x00\x00\x00\x0a0123456789"), mp3(382)...), 10},
		"mp3 with random data":            {noisy(383), 11},
		"flac with a tag":                 {append([]byte("ID3\x04\x00\x00\x00\x00\x00\x0a0123456789"), flac(100)...), 26},
		"ogg of vorbis":                   {vorbis(100), 7}, // 6.4 seconds
		"ogg":                             {ogg(500), 10},
		"flac":                            {flac(100), 26}, // 25.6 seconds
		"mp4":                             {mp4(157), 11},  // 10.048 seconds
		"webm":                            {webm(1000), 60},
		"nothing":                         {nil, 1},
		"100 bytes of whatever":           {bytes.Repeat([]byte("x"), 100), 12},
		"wav of a codec":                  {bytes.Replace(wav(1, 8000), []byte("\x01\x00\x01\x00"), []byte("\x11\x00\x01\x00"), 1), 966},
		"ogg that breaks off":             {ogg(500)[:2000], 240},
		"mp4 with two tables":             {append(mp4(157), box("stsz", make([]byte, 12))...), 1314},
		"mp4 whose table has more frames": {bytes.Replace(mp4(157), []byte{0, 0, 0, 157}, []byte{0, 0xff, 0, 157}, 1), 1312},
	} {
		if got := mostSeconds(c.file); got != c.want {
			t.Errorf("%s: %d seconds, want %d", name, got, c.want)
		}
	}
	garbled := append([]byte("\xff\xe2 no frame "), mp3(383)...)
	if got := mostSeconds(garbled); got < 11 {
		t.Errorf("an mp3 behind something else: %d seconds, want 11 at least", got)
	}
	for name, file := range map[string][]byte{"mp3": mp3(383), "ogg": ogg(500), "flac": flac(100), "mp4": mp4(157), "webm": webm(200)} {
		if a, b := mostSeconds(file), mostSeconds(append(slices.Clone(file), file...)); b < a {
			t.Errorf("%s twice: %d seconds, and %d once", name, b, a)
		}
	}
}

// Frames that a decoder finds count, although they are not where the container has its own.
func TestHiddenAudio(t *testing.T) {
	layer2 := bytes.Repeat(append([]byte{0xff, 0xfd, 0x80, 0x00}, make([]byte, 413)...), 383) // MPEG 1 of layer II, 128 kbit/s and 44,100 samples a second
	free := append(mp3(1), bytes.Repeat(append([]byte{0xff, 0xfb, 0x00, 0x00}, make([]byte, 100)...), 383)...)
	adts := append(mp3(1), bytes.Repeat(append([]byte{0xff, 0xf1, 0x60, 0x40, 0x01, 0x1f, 0xfc}, 0), 157)...) // AAC, 16,000 samples a second
	two := ogg(1)
	other := bytes.Clone(ogg(500))
	for at := 0; at < len(other); { // another stream, of which Opus is a disguise
		copy(other[at+14:], "next")
		page := 27 + int(other[at+26])
		for _, size := range other[at+27 : at+page] {
			page += int(size)
		}
		at += page
	}
	packed := bytes.Replace(webm(1000), []byte("\x86\x86A_OPUS"), []byte("\x86\x86A_OPUS\x6d\x80\x80"), 1)
	for name, c := range map[string]struct {
		file  []byte
		least int64
	}{
		"layer II":                          {layer2, 10},
		"layer II behind a frame":           {append(mp3(1), layer2...), 10},
		"frames without a rate":             {free, 10},
		"AAC behind a frame of MP3":         {adts, 10},
		"FLAC behind the tag of an MP3":     {append([]byte("ID3\x04\x00\x00\x00\x00\x00\x04\xff\xfb\x90\x00"), flac(100)...), 26},
		"two streams in an Ogg":             {append(two, other...), int64(len(two)+len(other)) * 120 / 1000},
		"blocks of WebM that are encoded":   {packed, int64(len(packed)) * 120 / 1000},
		"an MP4 with compressed tables":     {append(mp4(157), box("cmov")...), 1312},
		"an MP3 whose tag hides its frames": {append([]byte("ID3\x04\x00\x10\x00\x00\x00\x04abcd3DI\x04\x00\x10\x00\x00\x00\x04"), mp3(383)...), 10},
	} {
		if got := mostSeconds(c.file); got < c.least {
			t.Errorf("%s: %d seconds, want %d at least", name, got, c.least)
		}
	}
	if got := mostSeconds(layer2); got != 11 {
		t.Errorf("layer II: %d seconds, want 11", got)
	}
}

// oggPage returns a page of Ogg with packets of less than 255 bytes.
func oggPage(packets ...[]byte) []byte {
	b := append(append([]byte("OggS"), make([]byte, 22)...), byte(len(packets)))
	for _, p := range packets {
		b = append(b, byte(len(p)))
	}
	return append(b, bytes.Join(packets, nil)...)
}

// A header that contradicts itself, or that another one is hidden behind, does not make a file shorter than the sound
// that some decoder finds in it.
func TestLyingHeaders(t *testing.T) {
	wide := wav(60, 0)
	binary.LittleEndian.PutUint16(wide[22:], 512) // channels
	binary.LittleEndian.PutUint16(wide[34:], 64)  // bits, but a sample of all channels has one byte
	slow := bytes.Replace(wav(1, 0), []byte("\x01\x00\x01\x00\x40\x1f\x00\x00"), []byte("\x11\x00\x01\x00\x01\x00\x00\x00"), 1)

	var inAAC []byte
	for some := range slices.Chunk(mp3(383), 8184) {
		n := len(some) + 7
		inAAC = append(append(inAAC, 0xff, 0xf1, 0x40, 0x40|byte(n>>11), byte(n>>3), byte(n<<5)|0x1f, 0xfc), some...)
	}
	across := append(make([]byte, 200), mp3(383)...) // frames of MP3, each of which begins in one frame of AAC and ends in another
	for at := 0; at+7 <= len(across); at += 417 {
		copy(across[at:], []byte{0xff, 0xf1, 0x40, 0x40, 417 >> 3, 417&7<<5 | 0x1f, 0xfc})
	}
	across = across[:len(across)/417*417]
	sizes := func(n int, mark byte) []byte {
		return []byte{byte(n>>21) | mark, byte(n>>14)&0x7f | mark, byte(n>>7)&0x7f | mark, byte(n)&0x7f | mark}
	}
	tagged := func(mark byte) []byte {
		hidden := mp3(383)
		return slices.Concat([]byte("ID3\x04\x00\x00"), sizes(len(hidden), mark), hidden, mp3(1))
	}
	fast := bytes.Clone(flac(100))
	for i := 42; i < len(fast); i += 12 {
		fast[i+2] = 0xcb // 96,000 samples a second
		fast[i+5] = crc8(fast[i : i+5])
	}
	frame := []byte{0xff, 0xf8, 0x74, 0x08, 0, 0xff, 0xfe} // 65,535 samples of 8,000 a second
	frame = append(append(frame, crc8(frame)), 0, 0, 0, 0)
	inOgg := oggPage(append([]byte("\x7fFLAC\x01\x00\x00\x01"), flac(0)...))
	vorbis := oggPage([]byte("\x01vorbis\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xd6\x01")) // 1 sample a second, blocks of 8,192
	repeated := bytes.Replace(mp4(157), binary.BigEndian.AppendUint32([]byte("stsz\x00\x00\x00\x00\x00\x00\x00\x00"), 157), []byte("stsz\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x10\x00\x00"), 1)
	hidden := webm(1000)[bytes.Index(webm(1), []byte("\x1f\x43\xb6\x75")):]
	void := append(append(webm(1), 0xec, 0x40|byte(len(hidden)>>8), byte(len(hidden))), hidden...)
	for name, c := range map[string]struct {
		file  []byte
		least int64
	}{
		"WAV whose blocks are smaller than its samples": {wide, 60},
		"WAV of a codec at one sample a second":         {slow, 16_000},
		"MP3 across frames of AAC":                      {across, 10},
		"MP3 in frames of AAC":                          {inAAC, 10},
		"FLAC in MP4":                                   {append(box("ftyp", []byte("M4A isom")), box("fLaC", frame)...), 8},
		"MP3 in a tag":                                  {tagged(0), 10},
		"MP3 in a tag with a wrong size":                {tagged(0x80), 10},
		"FLAC with two rates":                           {fast, 25},
		"FLAC in Ogg":                                   {append(inOgg, oggPage(slices.Repeat([][]byte{frame}, 100)...)...), 819},
		"Vorbis of one sample a second":                 {append(vorbis, oggPage(slices.Repeat([][]byte{{0}}, 100)...)...), 400_000},
		"Ogg in a page of Ogg":                          {slices.Concat(ogg(1), oggPage(append([]byte{0x98}, oggPage(slices.Repeat([][]byte{{0x1b, 2}}, 60)...)...))), 7},
		"MP4 that repeats its frames":                   {repeated, 60_000},
		"MP4 with two edits":                            {append(mp4(157), box("elst", []byte{0, 0, 0, 0, 0, 0, 0, 2}, make([]byte, 24))...), 20},
		"clusters of WebM in a void":                    {void, 60},
	} {
		if got := mostSeconds(c.file); got < c.least {
			t.Errorf("%s: %d seconds, want %d at least", name, got, c.least)
		}
	}
}

// Whatever a file has, its length is at least a second, and no more than its bytes can hold.
func FuzzMostSeconds(f *testing.F) {
	for _, file := range [][]byte{wav(1, 8000), mp3(3), ogg(3), flac(3), mp4(3), webm(3), nil, []byte("OggS"), []byte("ID3\x04\x00\x10\x7f\x7f\x7f\x7f\x00\xff\xf1\x60")} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if got := mostSeconds(file); got < 1 || got > int64(maxAudio/audioSecond) {
			t.Errorf("%d seconds", got)
		}
	})
}
