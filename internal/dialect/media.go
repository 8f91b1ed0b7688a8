package dialect

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// What files cost, in tokens.
const (
	soundBytesPerToken = 500 // Gemini counts 32 tokens a second, which is MP3 at 128 kbit/s
	paperBytesPerToken = 50  // a PDF or anything unknown: between pages of text and pages of pictures
	minPaperTokens     = 1500
)

// minBlob is the length from which on a string may be an image or a file.
const minBlob = 256

// maxBlobHead is how many bytes of an escaped blob are unescaped.
const maxBlobHead = 1 << 16

// imageRules are what images cost at a provider, in tokens.
type imageRules struct {
	cost    func(width, height int) int // of an image of so many pixels
	unknown int                         // of an image or a file of which nothing is known
	low     int                         // of an image that the model is to look at less closely; 0: it makes no difference
	most    func(model string) int      // of the dearest image
	beyond  bool                        // images cost more than the context window counts
}

// imageRules returns what images cost at the endpoint.
func (e Endpoint) imageRules() *imageRules {
	return cmp.Or(e.API.protocol().images, dialectOf(e.Provider).images)
}

// media returns the cost of the image or file that a string encodes, or 0 if it is a text.
func (e Endpoint) media(t quoted) int {
	mime, data, isURI := cutDataURI(t)
	if !isURI && t.size() < minBlob || !base64Like(data.raw) {
		return 0
	}
	size := data.size() / 4 * 3
	raw := data.raw
	if data.spare > 0 {
		raw = base64Only(data.appendTo(nil, maxBlobHead))
	}
	b := blob(raw)
	head := b.head(0)
	switch kind := kindOf(head[:], mime); {
	case kind == imageKind:
		return e.image(b.dimensions())
	case kind == soundKind:
		return 1 + size/soundBytesPerToken
	case kind == paperKind:
		return max(minPaperTokens, size/paperBytesPerToken)
	case isURI && printable(head[:min(len(bytes.TrimRight(b, "="))*3/4, len(head))]):
		return 1 + size/bytesPerToken
	case isURI || mixed(data.raw):
		return 1 + size/paperBytesPerToken
	}
	return 0
}

// image returns the cost of an image by its size in pixels; 0 stands for an unknown size.
func (e Endpoint) image(width, height int) int {
	rules := e.imageRules()
	if width <= 0 || height <= 0 {
		return rules.unknown
	}
	// No provider uses more pixels, and the products of the rules stay small.
	return rules.cost(fit(width, height, max(width, height), 8192))
}

// fit shrinks an image so that the given side, which is its width or height, has at most so many
// pixels.
func fit(width, height, side, most int) (int, int) {
	if side <= most {
		return width, height
	}
	shrink := func(n int) int { return max(1, int(int64(n)*int64(most)/int64(side))) }
	return shrink(width), shrink(height)
}

// tiles returns the number of tiles that cover a side.
func tiles(side, tile int) int { return (side + tile - 1) / tile }

// cutDataURI cuts a string such as data:image/png;base64,iVBOR into its type and its data.
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

// sextets maps each character of base64, of either alphabet, to its value, and any other to -1.
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

// base64Like samples four parts of a string, and reports whether they have only characters of
// base64 and backslashes, which some encoders put before slashes and line breaks.
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

// mixed reports whether the start of a string has letters of both cases and digits, as base64 of
// anything but repetitive text has.
func mixed(raw []byte) bool {
	var upper, lower, digit bool
	for _, c := range raw[:min(len(raw), 64)] {
		upper = upper || 'A' <= c && c <= 'Z'
		lower = lower || 'a' <= c && c <= 'z'
		digit = digit || '0' <= c && c <= '9'
	}
	return upper && lower && digit
}

// base64Only removes everything that is not base64, such as line breaks.
func base64Only(b []byte) []byte {
	kept := b[:0]
	for _, c := range b {
		if sextets[c] >= 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// A blob is an image or a file in base64. It decodes single bytes on demand, and never the whole.
type blob []byte

// at returns the byte at an index, or -1 past the end.
func (b blob) at(i int) int {
	c, shift := i/3*4+i%3, 2*(i%3+1)
	if c+1 >= len(b) || sextets[b[c]] < 0 || sextets[b[c+1]] < 0 {
		return -1
	}
	return int(byte(int(sextets[b[c]])<<shift | int(sextets[b[c+1]])>>(6-shift)))
}

// head returns 32 bytes from an index on, with zeros past the end.
func (b blob) head(i int) (h [32]byte) {
	for n := range h {
		h[n] = byte(max(0, b.at(i+n)))
	}
	return h
}

// printable reports whether a file that starts with head may be a text.
func printable(head []byte) bool {
	return !slices.ContainsFunc(head, func(c byte) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' })
}

// A mediaKind is the kind of file that a blob is.
type mediaKind int

const (
	unknownKind mediaKind = iota
	imageKind
	soundKind // video too
	paperKind
)

// magics has the first bytes of each kind of file.
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
	{4, "ftyp", soundKind}, // MP4 and related formats
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

// kindOf returns the kind of a file by its first bytes, or else by its MIME type.
func kindOf(head, mime []byte) mediaKind {
	for _, m := range magics {
		if startsWith(head[m.at:], m.magic) {
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

func startsWith(b []byte, magic string) bool { return string(b[:len(magic)]) == magic }

// dimensions returns the width and height of an image in pixels, or 0 where its first bytes do not
// have them.
func (b blob) dimensions() (width, height int) {
	h := b.head(0)
	le, be := binary.LittleEndian, binary.BigEndian
	switch {
	case startsWith(h[:], "\x89PNG"):
		return int(be.Uint32(h[16:])), int(be.Uint32(h[20:]))
	case startsWith(h[:], "GIF8"):
		return int(le.Uint16(h[6:])), int(le.Uint16(h[8:]))
	case startsWith(h[:], "\xff\xd8"):
		return b.jpeg()
	case startsWith(h[12:], "VP8X"):
		return 1 + int(le.Uint32(h[24:])&0xffffff), 1 + int(le.Uint32(h[27:])&0xffffff)
	case startsWith(h[12:], "VP8L"):
		bits := le.Uint32(h[21:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case startsWith(h[12:], "VP8 "):
		return int(le.Uint16(h[26:]) & 0x3fff), int(le.Uint16(h[28:]) & 0x3fff)
	}
	return 0, 0
}

// jpeg follows the segments of a JPEG up to the one that has the dimensions.
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
		case marker == 0xff: // a fill byte
			at++
			continue
		}
		at += 2 + int(binary.BigEndian.Uint16(h[2:]))
	}
	return 0, 0
}
