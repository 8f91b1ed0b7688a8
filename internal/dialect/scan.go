package dialect

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A cursor reads JSON off a whole body, once, front to back, without allocations. It accepts what a
// lenient server might accept: control characters in strings, any word as a value, a comma too
// many. After an error it is at the end of the body.
type cursor struct {
	body []byte
	at   int
	err  error

	expanded int // how many bytes the characters may gain that are written as escapes: see expansion
}

// fail records the first error, and where it is. It does not quote the body, which may be secret.
func (c *cursor) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("ratelimit: request body: %s at byte %d", what, c.at)
	}
	c.at = len(c.body)
}

// next moves to the next byte that is no white space and returns it, or 0 at the end. All control
// characters count as white space.
func (c *cursor) next() byte {
	for c.at < len(c.body) {
		if b := c.body[c.at]; b > ' ' {
			return b
		}
		c.at++
	}
	return 0
}

// item moves to the next item of an object or array, and reports whether there is one. Behind the
// last item it reads end, which is } or ].
func (c *cursor) item(first bool, end byte) bool {
	b := c.next()
	switch {
	case b == ',' && !first:
		c.at++
		b = c.next()
	case b != end && !first && b != 0:
		c.fail("no comma between two items")
		return false
	}
	switch b {
	case end:
		c.at++
		return false
	case 0:
		c.fail("it ends too soon")
		return false
	}
	return true
}

// key reads the key of an item, and the colon.
func (c *cursor) key() []byte {
	if c.next() != '"' {
		c.fail("no key of an object")
		return nil
	}
	t := c.str()
	if c.next() != ':' {
		c.fail("no colon after a key")
		return nil
	}
	c.at++
	if t.spare > 0 {
		return []byte(t.String())
	}
	return t.raw
}

// A quoted is a string of the body.
type quoted struct {
	raw   []byte // the bytes between the quotes
	spare int    // by how many bytes raw is longer than the text, because of escapes
}

// size returns the length of the text as UTF-8.
func (t quoted) size() int { return len(t.raw) - t.spare }

// str reads a string. The cursor is on its first quote.
func (c *cursor) str() quoted {
	body, start, spare := c.body, c.at+1, 0
	for i := start; ; {
		if i = stringEnd(body, i); i >= len(body) {
			break
		}
		if body[i] == '"' {
			c.at = i + 1
			return quoted{body[start:i], spare}
		}
		if i+1 < len(body) && body[i+1] != 'u' && body[i+1] < utf8.RuneSelf { // the usual escape
			spare++
			i += 2
			continue
		}
		size, stands := c.escape(body[i:])
		spare += size - stands
		i += size
	}
	c.fail("a string without an end")
	return quoted{}
}

// escape reads an escape in a string: its length, and the length of the character that it stands for.
func (c *cursor) escape(b []byte) (size, stands int) {
	r, size, stands := readEscape(b)
	c.expanded += runeExpansion(r)
	return size, stands
}

// readEscape reads an escape, which starts with a backslash: the character that it stands for, the
// length of the escape, and the length of that character. An unknown escape stands for the
// character behind the backslash.
func readEscape(b []byte) (r rune, size, stands int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b), 0
	}
	if b[1] != 'u' {
		r, stands = utf8.DecodeRune(b[1:])
		if r < utf8.RuneSelf {
			r = unescaped(byte(r))
		}
		return r, 1 + stands, stands
	}
	if r = hex4(b[2:]); r < 0 {
		return 'u', 2, 1
	}
	size = 6
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if len(b) > 7 && b[6] == '\\' && b[7] == 'u' {
			low = hex4(b[8:])
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			size = 12
		}
	}
	return r, size, utf8.RuneLen(r)
}

// hex4 returns the number that four hexadecimal digits make, or -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, d := range b[:4] {
		r = r<<4 | hexDigit(d)
	}
	return max(r, -1)
}

// String returns the text without escapes. Bytes that are not UTF-8 become U+FFFD.
func (t quoted) String() string {
	if t.spare == 0 && utf8.Valid(t.raw) {
		return string(t.raw)
	}
	return string(t.appendTo(make([]byte, 0, t.size()), math.MaxInt))
}

// appendTo appends the text without escapes to dst, and stops when that has at least limit bytes.
func (t quoted) appendTo(dst []byte, limit int) []byte {
	for raw := t.raw; len(raw) > 0 && len(dst) < limit; {
		r, size := rune(raw[0]), 1
		switch {
		case r == '\\':
			r, size, _ = readEscape(raw)
		case r >= utf8.RuneSelf:
			r, size = utf8.DecodeRune(raw)
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[size:]
	}
	return dst
}

// scalar reads a value that is no string, object or array, such as 12 or null.
func (c *cursor) scalar() []byte {
	start := c.at
	for c.at < len(c.body) && !scalarEnds[c.body[c.at]] {
		c.at++
	}
	if c.at == start {
		c.fail("no value")
	}
	return c.body[start:c.at]
}

// scalarEnds are the bytes that end a scalar.
var scalarEnds = func() (t [256]bool) {
	for b := range byte(' ' + 1) {
		t[b] = true
	}
	for _, b := range []byte(`,:"[]{}`) {
		t[b] = true
	}
	return t
}()

// walk reads a value of any depth, and calls leaf, if that is not nil, with each of its keys,
// strings and scalars.
func (c *cursor) walk(leaf func(quoted)) {
	for depth := 0; ; {
		switch b := c.next(); b {
		case 0:
			c.fail("it ends too soon")
			return
		case '{', '[':
			depth++
			c.at++
		case '}', ']', ',', ':':
			if depth == 0 {
				c.fail("no value")
				return
			}
			if b == '}' || b == ']' {
				depth--
			}
			c.at++
		case '"':
			if t := c.str(); leaf != nil && c.err == nil {
				leaf(t)
			}
		default:
			if word := c.scalar(); leaf != nil {
				leaf(quoted{raw: word})
			}
		}
		if depth == 0 {
			return
		}
	}
}

// skip reads a value, and ignores it.
func (c *cursor) skip() { c.walk(nil) }

// name reads a value that should be a string. Any other value reads as "".
func (c *cursor) name() string {
	if c.next() != '"' {
		c.skip()
		return ""
	}
	return c.str().String()
}

// word reads a value that should be a scalar. Any other value reads as nil.
func (c *cursor) word() []byte {
	switch c.next() {
	case '"', '{', '[', 0:
		c.skip()
		return nil
	}
	return c.scalar()
}

// count reads a value that should be a number of tokens or of answers, and reports whether it is a
// whole number or null. Anything else, and numbers below 1, read as 0. The number is bounded so
// that the product of two is an int.
func (c *cursor) count() (n int, whole bool) {
	word := string(c.word())
	if strings.Trim(word, "0123456789.-+eE") != "" {
		return 0, word == "null"
	}
	number, err := strconv.ParseFloat(word, 64) // infinite if out of range
	whole = err == nil && number == math.Trunc(number)
	if !(number >= 1) {
		return 0, whole
	}
	return int(min(number, math.MaxInt32)), whole
}
