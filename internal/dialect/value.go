package dialect

import (
	"encoding/binary"
	"math/bits"
)

// values reads JSON values that follow one another, in pieces split anywhere, and tallies them. It
// keeps no text. It ignores brackets and commas between values, so that it reads the elements of an
// array like values.
//
// It accepts any JSON, and more: what matters is that a value has all of its brackets. After
// something that cannot be read it ignores everything up to reset.
type values struct {
	node         *node  // of the value that is being read or comes next
	top          *node  // of whole values
	depth        int    // how many values are around this one
	arrays       uint16 // has a bit for each of them that is an array
	state        state
	escape       uint8 // 0 outside an escape, 1 behind the backslash, 2 to 5 before each digit of \u
	hidesUsage   bool  // chunks with nothing but usage are hidden: shape is recorded
	pieceCounted bool  // the text that is being read has been counted as a piece
	hex          rune
	skipDepth    int       // how many brackets are open in a value that is skipped
	packed       *unpacker // decodes strings that hold JSON; nil: there are none

	path [16]*node // the nodes of the values around this one

	tally
	shape     shape
	word      word // the name or scalar that is being read
	entryKind word // of the entry that is being read
}

// state is what the reader expects, or is in.
type state uint8

const (
	atTop  state = iota // expects a value, or the end
	atName              // expects a name, or the end of an object
	inName
	atColon
	atValue      // expects a value, or the end of an array
	inText       // a string of text, which is counted
	inWord       // a string that is kept
	inString     // a string that is ignored
	inPacked     // a string that holds JSON in base64
	inScalar     // a number, true, false or null
	inDeep       // a value that is skipped
	inDeepString // a string in a value that is skipped
	atBroken     // the rest cannot be read
)

// read reads a piece.
func (v *values) read(p []byte) {
	for i := 0; i < len(p); {
		switch v.state {
		case atName:
			i = v.readName(p, i)
		case atValue:
			i = v.readValue(p, i)
		case inName, inText, inWord, inString, inPacked, inDeepString:
			i = v.readString(p, i)
		case inDeep:
			i = v.readDeep(p, i)
		case inScalar:
			i = v.readScalar(p, i)
		case atColon:
			i = v.readColon(p, i)
		case atTop:
			i = v.readTop(p, i)
		case atBroken:
			return
		}
	}
}

// reset forgets an incomplete value, and expects another.
func (v *values) reset() {
	if v.state != atTop {
		v.drop()
		v.state, v.escape = atTop, 0
	}
	v.shape = shape{}
}

// newline reads the end of a line. It ends a scalar; a string cannot contain it.
func (v *values) newline() {
	switch v.state {
	case inName, inText, inWord, inString, inPacked, inDeepString:
		v.state = atBroken
	case inScalar:
		v.read([]byte{'\n'})
	}
}

// unfinished returns the text of an incomplete value.
func (v *values) unfinished() text {
	if v.state == atTop || v.state == atBroken {
		return text{}
	}
	return v.texts()
}

func (v *values) readTop(p []byte, i int) int {
	switch p[i] {
	case '{':
		v.node, v.depth = v.top, 0
		v.enter(atName)
	case '[':
		v.shape.array = true
	case ' ', '\t', '\r', '\n', ',', ']':
	default:
		v.ended = v.ended || v.shape.array && p[i] == 'D' // [DONE], which is not JSON, ends a stream
		v.state = atBroken
	}
	return i + 1
}

func (v *values) readName(p []byte, i int) int {
	switch p[i] {
	case '"':
		if j := stringEnd(p, i+1); j < len(p) && p[j] == '"' { // nearly always
			v.setName(p[i+1 : j])
			return j + 1
		}
		v.word.n = 0
		v.state = inName
	case ',', ' ', '\t', '\r', '\n':
	case '}':
		v.leave()
	default:
		v.state = atBroken
	}
	return i + 1
}

// setName begins a member of an object.
func (v *values) setName(name []byte) {
	object := v.path[v.depth-1]
	v.node = object.members[string(name)]
	if v.hidesUsage && object == commonTop {
		v.shape.recordMember(v.node, name)
	}
	v.state = atColon
}

func (v *values) readColon(p []byte, i int) int {
	switch p[i] {
	case ':':
		v.state = atValue
	case ' ', '\t', '\r', '\n':
	default:
		v.state = atBroken
	}
	return i + 1
}

func (v *values) readValue(p []byte, i int) int {
	switch p[i] {
	case '"':
		return v.beginString(p, i+1)
	case '{':
		v.beginObject()
	case '[':
		v.beginArray()
	case ' ', '\t', '\r', '\n':
	case ',':
		if !v.elements() {
			v.state = atBroken
		}
	case ']':
		if !v.elements() {
			v.state = atBroken
			break
		}
		v.leave()
	case '}', ':':
		v.state = atBroken
	default:
		return v.beginScalar(p, i)
	}
	return i + 1
}

// elements reports whether the value is an element of an array.
func (v *values) elements() bool { return v.arrays>>(v.depth-1)&1 != 0 }

func (v *values) beginObject() {
	if v.hidesUsage {
		v.shape.recordValue(v.node, v.depth, '{')
	}
	switch {
	case v.node == nil || v.node.members == nil || v.depth == len(v.path):
		v.skip()
	default:
		if v.node.entries != nil {
			v.beginEntry()
		}
		v.failed = v.failed || v.node.role == roleFault
		v.hasAnswer = v.hasAnswer || v.node.answers
		if n := v.node.each; n != noNumber {
			v.current.increase(n)
		}
		v.enter(atName)
	}
}

func (v *values) beginArray() {
	if v.hidesUsage {
		v.shape.recordValue(v.node, v.depth, '[')
	}
	if v.node == nil || v.node.role == roleArgs || v.elements() || v.depth == len(v.path) {
		v.skip()
		return
	}
	v.enter(atValue)
}

// skip begins a value that is ignored.
func (v *values) skip() {
	v.pieceCounted = false
	v.skipDepth = 1
	v.state = inDeep
}

// enter begins the members of an object, or the elements of an array.
func (v *values) enter(s state) {
	v.path[v.depth] = v.node
	v.arrays &^= 1 << v.depth
	if s == atValue {
		v.arrays |= 1 << v.depth
	}
	v.depth++
	v.state = s
}

// leave ends a value with members or elements.
func (v *values) leave() {
	v.depth--
	if n := v.path[v.depth]; n.entries != nil && v.arrays>>v.depth&1 == 0 {
		v.endEntry(n)
	}
	if v.depth > 0 {
		v.proceed()
		return
	}
	v.commit()
	v.shape.values++
	v.state = atTop
}

// proceed goes on behind a value.
func (v *values) proceed() {
	v.state = atName
	if v.elements() {
		v.node = v.path[v.depth-1]
		v.state = atValue
	}
}

func (v *values) beginScalar(p []byte, i int) int {
	if v.hidesUsage {
		v.shape.recordValue(v.node, v.depth, 0)
	}
	j := scalarEnd(p, i)
	if j < len(p) { // nearly always
		v.scalar(p[i:j])
		return j
	}
	v.word.n = 0
	v.word.add(p[i:j])
	v.state = inScalar
	return j
}

func (v *values) readScalar(p []byte, i int) int {
	j := scalarEnd(p, i)
	v.word.add(p[i:j])
	if j < len(p) {
		v.scalar(v.word.bytes())
	}
	return j
}

func (v *values) scalar(b []byte) {
	switch {
	case v.node.is(roleNumber):
		if n, ok := v.node.written.parse(b); ok { // any other number is ignored
			if v.node.sums && v.current.has(v.node.number) {
				n = min(n+v.current.n[v.node.number], maxNumber)
			}
			v.current.set(v.node.number, n)
		}
	case v.node.isWord() && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		v.keep(b)
	}
	v.proceed()
}

// keep stores the word that the value is.
func (v *values) keep(b []byte) {
	var w *word
	switch v.node.role {
	case roleFault:
		v.failed = v.failed || len(b) > 0
		return
	case roleFinish:
		if len(b) > 0 {
			v.finished++
		}
		return
	case roleTier:
		v.tierNow = tierOf(b)
		return
	case roleUsageTier:
		if t := tierOf(b); t > tierUsual {
			v.tierNow = max(v.tierNow, t)
		}
		return
	case roleSpeed:
		v.tierNow = max(v.tierNow, tierOf(b))
		return
	case roleEntryKind:
		w = &v.entryKind
	case roleID:
		w = &v.id
	case roleStatus:
		w = &v.statusNow
	case roleType:
		v.event = eventKindOf(b)
		return
	case roleCode:
		w = &v.code
	case roleFaultType:
		w = &v.faultKind
	case roleFaultCode:
		w = &v.faultCode
	}
	w.n = 0
	w.add(b)
}

// readDeep reads on in a value that is ignored. Of the arguments of a tool, it counts every byte: the model has
// written their names, numbers and brackets, too.
func (v *values) readDeep(p []byte, i int) int {
	j := v.skipDeep(p, i)
	if v.node.is(roleArgs) {
		v.plain.bytes += j - i
	}
	if v.skipDepth == 0 {
		v.proceed()
	}
	return j
}

// skipDeep returns the index behind the end of a value that is ignored, or behind the quote that begins a string in
// it, or the length of p.
func (v *values) skipDeep(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case '"':
			v.state = inDeepString
			return i + 1
		case '{', '[':
			v.skipDepth++
		case '}', ']':
			v.skipDepth--
			if v.skipDepth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// scalarEnd returns the index of the end of a scalar, from i on, or the length of p.
func scalarEnd(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

// chars returns how many characters begin in b.
func chars(b []byte) int {
	n := len(b)
	for ; len(b) >= 8; b = b[8:] {
		if w := binary.LittleEndian.Uint64(b); w&(0x80*eachByte) != 0 { // not only ASCII
			n -= bits.OnesCount64(w >> 7 &^ (w >> 6) & eachByte)
		}
	}
	for _, c := range b {
		n -= int(c >> 7 &^ (c >> 6) & 1) // 1 for a byte that continues a character
	}
	return n
}
