package dialect

import (
	"encoding/binary"
	"unicode/utf8"
)

// A text has at most one token a byte, as every tokenizer of today makes at least one byte of text a token. But some
// tokenizers normalise the text first: Qwen's and Cohere's to NFC, Anthropic's published one to NFKC. A few characters
// become longer by that, the worst of them, U+FDFA, eleven times as long. These are their ranges, and the most bytes
// that a character of the range gains, in Unicode 14.
var expansions = [...]struct {
	first, last rune
	more        int
}{
	{0x00A8, 0x00BE, 3}, {0x013F, 0x0140, 1}, {0x0149, 0x0149, 1}, {0x01C4, 0x01C6, 1}, {0x02D8, 0x02DD, 1},
	{0x0344, 0x0344, 2}, {0x037A, 0x037A, 1}, {0x0384, 0x0385, 3}, {0x0587, 0x0587, 2}, {0x0675, 0x0678, 2},
	{0x0958, 0x095F, 3}, {0x09DC, 0x09DF, 3}, {0x0A33, 0x0A36, 3}, {0x0A59, 0x0A5E, 3}, {0x0B5C, 0x0B5D, 3},
	{0x0E33, 0x0E33, 3}, {0x0EB3, 0x0EB3, 3}, {0x0EDC, 0x0EDD, 3}, {0x0F43, 0x0F43, 3}, {0x0F4D, 0x0F5C, 3},
	{0x0F69, 0x0F69, 3}, {0x0F73, 0x0F81, 6}, {0x0F93, 0x0F93, 3}, {0x0F9D, 0x0FAC, 3}, {0x0FB9, 0x0FB9, 3},
	{0x1FC1, 0x1FC1, 2}, {0x1FCD, 0x1FCF, 2}, {0x1FDD, 0x1FDF, 2}, {0x1FED, 0x1FEE, 2}, {0x2033, 0x2037, 6},
	{0x2057, 0x2057, 9}, {0x2150, 0x2167, 3}, {0x2177, 0x2177, 1}, {0x2189, 0x2189, 2}, {0x222C, 0x2230, 6},
	{0x247D, 0x2487, 1}, {0x2A0C, 0x2A0C, 9}, {0x2ADC, 0x2ADC, 2}, {0x309B, 0x309F, 3}, {0x30FF, 0x30FF, 3},
	{0x3200, 0x3243, 5}, {0x327C, 0x327D, 3}, {0x32C0, 0x32CB, 2}, {0x32FF, 0x3370, 15}, {0x337B, 0x337F, 9},
	{0x3389, 0x3389, 1}, {0x33A7, 0x33AF, 5}, {0x33C2, 0x33C6, 3}, {0x33D8, 0x33FE, 2}, {0xFA6C, 0xFA6C, 1},
	{0xFACF, 0xFAD7, 1}, {0xFB13, 0xFB1F, 1}, {0xFB2A, 0xFB4F, 3}, {0xFBDD, 0xFBDD, 1}, {0xFBEA, 0xFD3D, 3},
	{0xFD50, 0xFDC7, 3}, {0xFDF0, 0xFDFC, 30}, {0xFE71, 0xFE7F, 1}, {0xFEF5, 0xFEFC, 1}, {0x1D15E, 0x1D164, 8},
	{0x1D1BB, 0x1D1C0, 8}, {0x1F12A, 0x1F12A, 3}, {0x1F200, 0x1F201, 2}, {0x1F240, 0x1F248, 5},
}

// mayExpand has a mark for each 64 characters of the first 65,536 of which one is in expansions or is no character.
var mayExpand = func() (blocks [1024]bool) {
	for _, x := range expansions {
		for r := x.first; r <= x.last && r < 1<<16; r++ {
			blocks[r>>6] = true
		}
	}
	for r := 0xD800; r < 0xE000; r += 64 { // surrogates are not valid in UTF-8
		blocks[r>>6] = true
	}
	return blocks
}()

// runeExpansion returns how many bytes a character may gain.
func runeExpansion(r rune) int {
	from, to := 0, len(expansions)
	for from < to {
		if middle := (from + to) / 2; r > expansions[middle].last {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from < len(expansions) && r >= expansions[from].first {
		return expansions[from].more
	}
	return 0
}

// expansion returns how many bytes a text may gain before its tokens are counted, and whether it is more than ASCII. A
// byte that is not UTF-8 becomes a character of three bytes where a server does not refuse it.
func expansion(b []byte) (more int, wide bool) {
	i := ascii(b)
	if i == len(b) {
		return 0, false
	}
	for i < len(b) {
		c := b[i]
		switch {
		case c < utf8.RuneSelf:
			i++
			if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:])&(0x80*eachByte) == 0 {
				i += 8
			}
			continue
		case 0xC2 <= c && c < 0xE0 && i+1 < len(b) && b[i+1]&0xC0 == 0x80 && !mayExpand[c&0x1F]:
			i += 2
			continue
		case 0xE0 <= c && c < 0xF0 && i+2 < len(b) && b[i+1]&0xC0 == 0x80 && b[i+2]&0xC0 == 0x80:
			if block := int(c&0x0F)<<6 | int(b[i+1]&0x3F); block >= 0x800>>6 && !mayExpand[block] {
				i += 3
				continue
			}
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			more += len(string(utf8.RuneError)) - 1
		} else {
			more += runeExpansion(r)
		}
		i += size
	}
	return more, true
}

// ascii returns the length of the beginning of a text that is ASCII, of which it may leave out the last bytes.
func ascii(b []byte) int {
	i := 0
	for ; i+64 <= len(b); i += 64 {
		w := (*[64]byte)(b[i:])
		high := binary.LittleEndian.Uint64(w[:]) | binary.LittleEndian.Uint64(w[8:]) | binary.LittleEndian.Uint64(w[16:]) |
			binary.LittleEndian.Uint64(w[24:]) | binary.LittleEndian.Uint64(w[32:]) | binary.LittleEndian.Uint64(w[40:]) |
			binary.LittleEndian.Uint64(w[48:]) | binary.LittleEndian.Uint64(w[56:])
		if high&(0x80*eachByte) != 0 {
			return i
		}
	}
	for i < len(b) && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// highBytes returns how many bytes of a text are not ASCII.
func highBytes(b []byte) (n int) {
	for _, c := range b {
		n += int(c >> 7)
	}
	return n
}
