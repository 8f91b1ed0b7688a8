package dialect

import "unicode/utf8"

// The strings of a value: names, words that are kept, text that is counted, and packed
// values, with their escapes.

// beginString begins a string that is a value. The quote before it has been read.
func (v *values) beginString(p []byte, i int) int {
	if v.hidesUsage {
		v.shape.recordValue(v.node, v.depth, 0)
	}
	switch {
	case v.node.isText():
		v.pieceCounted = false
		v.state = inText
		if v.node.role == roleName {
			v.blocks++
		}
	case v.node.isWord():
		v.word.n = 0
		v.state = inWord
	case v.node.is(rolePacked):
		v.state = inPacked
	default:
		if v.node != nil && v.node.each != noNumber {
			v.current.increase(v.node.each)
		}
		v.state = inString
	}
	return v.readString(p, i)
}

// readString reads on in a string.
func (v *values) readString(p []byte, i int) int {
	for i < len(p) {
		if v.escape > 0 {
			v.unescape(p[i])
			i++
			continue
		}
		j := stringEnd(p, i)
		v.gather(p[i:j])
		if j == len(p) {
			return j
		}
		i = j + 1
		if p[j] == '"' {
			v.endString()
			return i
		}
		v.escape = 1
	}
	return i
}

// gather reads characters of a string.
func (v *values) gather(b []byte) {
	switch v.state {
	case inText:
		v.write(chars(b), len(b))
	case inDeepString:
		if v.node.is(roleArgs) {
			v.write(chars(b), len(b))
		}
	case inName, inWord:
		v.word.add(b)
	case inPacked:
		v.packed.write(b)
	}
}

// write counts text.
func (v *values) write(chars, bytes int) {
	t := &v.plain
	switch {
	case v.node.is(roleReasoning):
		t = &v.reasonings[0]
	case v.node.is(roleReasoningContent):
		t = &v.reasonings[1]
	}
	t.bytes += bytes
	if chars == 0 {
		return
	}
	t.chars += chars
	if !v.pieceCounted {
		t.pieces++
		v.pieceCounted = true
	}
}

// unescape reads a byte of an escape.
func (v *values) unescape(c byte) {
	switch {
	case v.escape > 1:
		v.hex = v.hex<<4 | hexDigit(c)
		if v.escape++; v.escape > 5 {
			v.escape = 0
			v.gatherRune(v.hex)
		}
	case c == 'u':
		v.escape, v.hex = 2, 0
	default:
		v.escape = 0
		v.gatherRune(unescaped(c))
	}
}

// gatherRune reads an escaped character of a string.
func (v *values) gatherRune(r rune) {
	switch v.state {
	case inText, inDeepString:
		if v.state == inDeepString && !v.node.is(roleArgs) || r >= 0xDC00 && r <= 0xDFFF { // the second half of a surrogate pair
			return
		}
		v.write(1, utf8.UTFMax)
	case inName, inWord:
		v.word.addRune(r)
	case inPacked: // only a slash is ever escaped
		v.packed.write([]byte{byte(r)})
	}
}

func (v *values) endString() {
	switch v.state {
	case inName:
		v.setName(v.word.bytes())
	case inDeepString:
		v.state = inDeep
	case inWord:
		v.keep(v.word.bytes())
		v.proceed()
	case inPacked:
		v.packed.end()
		v.proceed()
	default:
		v.proceed()
	}
}
