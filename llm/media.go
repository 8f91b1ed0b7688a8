package llm

import (
	"bytes"
	"encoding/binary"
)

// What images and files cost, in tokens.
const (
	openAIGlance   = 85   // of an image at low detail, and of any beside its tiles
	openAITile     = 170  // of 512 by 512 pixels
	openAIUnseen   = 1105 // of an image of 1024 by 2048, or larger with these sides
	anthropicMost  = 1600 // larger images are made smaller
	anthropicPixel = 750  // pixels of a token
	geminiTile     = 258  // of 768 by 768 pixels, or of a small image
	geminiUnseen   = 4 * geminiTile

	bytesOfSound = 500 // of a token: 32 of them are a second of MP3 at 128 kbit/s, as Gemini counts
	bytesOfPaper = 50  // of a token of a PDF or of anything unknown: between pages of text and of pictures
	paperLeast   = 1500
)

// blobLeast is the length from which on a text may be an image or a file.
const blobLeast = 256

// headMost is how much of a blob with escapes in it is looked at.
const headMost = 1 << 16

// looksAs returns whose way of counting images the endpoint has.
func (e Endpoint) looksAs() Provider {
	switch {
	case e.API == Messages || e.Provider == Anthropic || e.Provider == Bedrock:
		return Anthropic
	case e.API == Generate || e.Provider == Gemini || e.Provider == Vertex:
		return Gemini
	}
	return OpenAI
}

// unseen returns what an image or a file costs of which nothing is known.
func (e Endpoint) unseen() int {
	switch e.looksAs() {
	case Anthropic:
		return anthropicMost
	case Gemini:
		return geminiUnseen
	}
	return openAIUnseen
}

// media returns what the image or the file costs that a text is, or 0 for a text
// that is none.
func (e Endpoint) media(t quoted) int {
	mime, data, isURI := cutDataURI(t)
	if !isURI && t.size() < blobLeast || !base64Like(data.raw) {
		return 0
	}
	size := data.size() / 4 * 3
	raw := data.raw
	if data.spare > 0 {
		raw = base64Only(data.appendTo(nil, headMost))
	}
	b := blob(raw)
	switch kind := kindOf(b, mime); {
	case kind == imageKind:
		return e.image(b.dimensions())
	case kind == soundKind:
		return 1 + size/bytesOfSound
	case kind == paperKind:
		return max(paperLeast, size/bytesOfPaper)
	case isURI && b.printable():
		return 1 + size/bytesOfToken
	case isURI || mixed(data.raw):
		return 1 + size/bytesOfPaper
	}
	return 0
}

// image returns what an image of such a size costs; 0 is a size that is not known.
func (e Endpoint) image(width, height int) int {
	if width <= 0 || height <= 0 {
		return e.unseen()
	}
	// No provider looks at more, and products stay small.
	width, height = fit(width, height, max(width, height), 8192)
	switch e.looksAs() {
	case Anthropic:
		return min(1+width*height/anthropicPixel, anthropicMost)
	case Gemini:
		if width <= 384 && height <= 384 {
			return geminiTile
		}
		width, height = fit(width, height, max(width, height), 3072)
		return geminiTile * tiles(width, 768) * tiles(height, 768)
	}
	width, height = fit(width, height, max(width, height), 2048)
	width, height = fit(width, height, min(width, height), 768)
	return openAIGlance + openAITile*tiles(width, 512)*tiles(height, 512)
}

// fit makes an image smaller such that its given side is most pixels at most.
func fit(width, height, side, most int) (int, int) {
	if side <= most {
		return width, height
	}
	shrink := func(n int) int { return max(1, int(int64(n)*int64(most)/int64(side))) }
	return shrink(width), shrink(height)
}

// tiles returns how many tiles cover a side.
func tiles(side, tile int) int { return (side + tile - 1) / tile }

// cutDataURI cuts a text such as data:image/png;base64,iVBOR into its type and its
// data.
func cutDataURI(t quoted) (mime []byte, data quoted, ok bool) {
	head := t.raw[:min(len(t.raw), 128)]
	if !bytes.HasPrefix(head, []byte("data:")) {
		return nil, t, false
	}
	mime, _, ok = bytes.Cut(head, []byte(";base64,"))
	if !ok {
		return nil, t, false
	}
	return mime[len("data:"):], quoted{t.raw[len(mime)+len(";base64,"):], t.spare}, true
}

// The value of each character of base64, of both alphabets, or -1.
var sextets = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = int8(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// base64Like reports whether a few places of a text hold what base64 is made of, or
// a backslash, which some put before slashes and line breaks.
func base64Like(raw []byte) bool {
	const window = 64
	for part := range 4 {
		from := len(raw) / 4 * part
		for _, c := range raw[from:min(from+window, len(raw))] {
			if sextets[c] < 0 && c != '\\' && c != '=' {
				return false
			}
		}
	}
	return len(raw) > 0
}

// mixed reports whether letters of both cases and digits come early in a text, as
// they do in base64 of anything but a text that repeats.
func mixed(raw []byte) bool {
	var upper, lower, digit bool
	for _, c := range raw[:min(len(raw), 64)] {
		upper = upper || 'A' <= c && c <= 'Z'
		lower = lower || 'a' <= c && c <= 'z'
		digit = digit || '0' <= c && c <= '9'
	}
	return upper && lower && digit
}

// base64Only removes line breaks.
func base64Only(b []byte) []byte {
	kept := b[:0]
	for _, c := range b {
		if sextets[c] >= 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// A blob is an image or a file in base64. Its bytes are read one by one, so what is
// between those that matter is never decoded.
type blob []byte

// at returns a byte, or -1 past the end.
func (b blob) at(i int) int {
	c, shift := i/3*4+i%3, 2*(i%3+1)
	if c+1 >= len(b) || sextets[b[c]] < 0 || sextets[b[c+1]] < 0 {
		return -1
	}
	return int(byte(int(sextets[b[c]])<<shift | int(sextets[b[c+1]])>>(6-shift)))
}

// head returns the bytes from i on. Those past the end are 0.
func (b blob) head(i int) (h [16]byte) {
	for n := range h {
		h[n] = byte(max(0, b.at(i+n)))
	}
	return h
}

// is reports whether the bytes from i on are those of magic.
func (b blob) is(i int, magic string) bool {
	for n := range len(magic) {
		if b.at(i+n) != int(magic[n]) {
			return false
		}
	}
	return true
}

// printable reports whether the blob begins like a text.
func (b blob) printable() bool {
	for i := range 24 {
		if c := b.at(i); c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// A mediaKind is what a blob is to a model.
type mediaKind int

const (
	unknownKind mediaKind = iota
	imageKind
	soundKind // or film
	paperKind
)

// magics are how files of a kind begin.
var magics = []struct {
	at    int
	magic string
	kind  mediaKind
}{
	{0, "\x89PNG", imageKind},
	{0, "\xff\xd8\xff", imageKind},
	{0, "GIF8", imageKind},
	{8, "WEBP", imageKind},
	{8, "heic", imageKind},
	{8, "heix", imageKind},
	{8, "mif1", imageKind},
	{8, "avif", imageKind},
	{0, "%PDF", paperKind},
	{4, "ftyp", soundKind}, // MP4 and its kin
	{8, "WAVE", soundKind},
	{8, "AVI ", soundKind},
	{0, "OggS", soundKind},
	{0, "fLaC", soundKind},
	{0, "ID3", soundKind},
	{0, "\xff\xfb", soundKind}, // MP3 without a tag
	{0, "\xff\xf3", soundKind},
	{0, "\xff\xf2", soundKind},
	{0, "\x1a\x45\xdf\xa3", soundKind}, // WebM and Matroska
}

// kindOf tells what a blob is by how it begins, or else by its type.
func kindOf(b blob, mime []byte) mediaKind {
	for _, m := range magics {
		if b.is(m.at, m.magic) {
			return m.kind
		}
	}
	switch {
	case bytes.HasPrefix(mime, []byte("image")):
		return imageKind
	case bytes.HasPrefix(mime, []byte("audio")), bytes.HasPrefix(mime, []byte("video")):
		return soundKind
	}
	return unknownKind
}

// dimensions returns how many pixels wide and high an image is, or 0 where that is
// not told early.
func (b blob) dimensions() (width, height int) {
	le, be := binary.LittleEndian, binary.BigEndian
	switch {
	case b.is(0, "\x89PNG"):
		h := b.head(16)
		return int(be.Uint32(h[0:])), int(be.Uint32(h[4:]))
	case b.is(0, "GIF8"):
		h := b.head(6)
		return int(le.Uint16(h[0:])), int(le.Uint16(h[2:]))
	case b.is(0, "\xff\xd8"):
		return b.jpeg()
	case b.is(12, "VP8X"):
		h := b.head(24)
		return 1 + int(le.Uint32(h[0:])&0xffffff), 1 + int(le.Uint32(h[3:])&0xffffff)
	case b.is(12, "VP8L"):
		h := b.head(21)
		bits := le.Uint32(h[0:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case b.is(12, "VP8 "):
		h := b.head(26)
		return int(le.Uint16(h[0:]) & 0x3fff), int(le.Uint16(h[2:]) & 0x3fff)
	}
	return 0, 0
}

// jpeg goes from segment to segment of a JPEG until one tells its dimensions.
func (b blob) jpeg() (width, height int) {
	at := 2
	for range 64 {
		h := b.head(at)
		marker := h[1]
		if h[0] != 0xff {
			return 0, 0
		}
		switch {
		case 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return int(binary.BigEndian.Uint16(h[7:])), int(binary.BigEndian.Uint16(h[5:]))
		case marker == 0xff: // filled up
			at++
			continue
		}
		at += 2 + int(binary.BigEndian.Uint16(h[2:]))
	}
	return 0, 0
}
