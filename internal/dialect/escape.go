package dialect

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// eachByte times a byte is a word with that byte eight times.
const eachByte uint64 = 0x0101010101010101

// stringEnd returns the index, from i on, of the first quote or backslash, or the length of p. Most
// are near, so it first looks at eight bytes at a time. Package bytes is faster for a far one; it
// searches in parts, so that it does not search for a far quote again at each backslash.
func stringEnd(p []byte, i int) int {
	const near, part = 64, 1024
	for end := min(i+near, len(p)); i+8 <= end; i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		quote, slash := w^'"'*eachByte, w^'\\'*eachByte
		// The lowest bit set marks the first byte that is a quote or a backslash.
		if zero := ((quote-eachByte)&^quote | (slash-eachByte)&^slash) & (0x80 * eachByte); zero != 0 {
			return i + bits.TrailingZeros64(zero)/8
		}
	}
	for i < len(p) {
		b := p[i:min(i+part, len(p))]
		quote := bytes.IndexByte(b, '"')
		if quote >= 0 {
			b = b[:quote]
		}
		if slash := bytes.IndexByte(b, '\\'); slash >= 0 {
			return i + slash
		}
		i += len(b)
		if quote >= 0 {
			return i
		}
	}
	return i
}

// unescaped returns the character that a letter after a backslash stands for.
func unescaped(c byte) rune {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(c)
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c - 'a' + 10)
	case c >= 'A' && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}
