package llm

import (
	"cmp"
	"encoding/binary"
	"math/bits"
)

// values reads JSON values that follow one another, in pieces split anywhere, and
// tallies what they tell. It keeps no text, and nothing of what it need not know.
// Brackets and commas between values are passed over, so the elements of an array
// are such values too.
//
// It takes any JSON, and more: what matters is that a value has all of its brackets.
// What follows something that cannot be read is ignored, up to reset.
type values struct {
	tally
	shape shape
	hides bool // chunks that have nothing but usage are hidden: shape tells them
	state state
	node  node // of the value that comes, or that is read
	top   node // of whole values; nodeNone is nodeTop

	path [16]node // the values around it; with inArray, one of an array's
	open int      // how many there are

	deep  int  // how many brackets are open in a value that is passed over
	piece bool // the text that is read has been counted as a piece

	word   word      // a name or a scalar, as far as it has come
	packed *unpacker // of strings that are values themselves; nil: there are none
	escape uint8
	hex    rune
}

// inArray marks the node of an array.
const inArray node = 1 << 7

// state is what comes next.
type state uint8

const (
	atTop    state = iota // a value, or nothing
	atName                // of a member, or the end of an object
	inName                //
	atColon               //
	atValue               // of a member or an element, or the end of an array
	inText                // a string of text
	inWord                // a string that is kept
	inString              // a string that is not
	inPacked              // a string that is a value itself
	inScalar              // a number, or true, false, null
	inDeep                // a value that is passed over
	inDeepString
	atBroken // nothing that can be read
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

// reset forgets a value that is not complete. Another may follow.
func (v *values) reset() {
	if v.state != atTop {
		v.drop()
		v.state, v.escape = atTop, 0
	}
	v.shape = shape{}
}

// newline reads the end of a line. It ends a scalar, and may not be in a string.
func (v *values) newline() {
	switch v.state {
	case inName, inText, inWord, inString, inPacked, inDeepString:
		v.state = atBroken
	case inScalar:
		v.read([]byte{'\n'})
	}
}

// unfinished returns the text of the value that is not complete.
func (v *values) unfinished() text {
	if v.state == atTop || v.state == atBroken {
		return text{}
	}
	return v.texts()
}

func (v *values) readTop(p []byte, i int) int {
	switch p[i] {
	case '{':
		v.node, v.open = cmp.Or(v.top, nodeTop), 0
		v.enter(v.node, atName)
	case '[':
		v.shape.array = true
	case ' ', '\t', '\r', '\n', ',', ']':
	default:
		v.state = atBroken
	}
	return i + 1
}

// readName reads names, and passes over members of no interest that are wholly in p
// and without members of their own: nearly all are.
func (v *values) readName(p []byte, i int) int {
	object := v.path[v.open-1]
	for i < len(p) {
		switch p[i] {
		case '"':
		case ',', ' ', '\t', '\r', '\n':
			i++
			continue
		case '}':
			v.leave()
			return i + 1
		default:
			v.state = atBroken
			return i
		}
		j := stringEnd(p, i+1)
		if j+2 >= len(p) || p[j] != '"' || p[j+1] != ':' {
			v.word.n = 0
			v.state = inName
			return i + 1
		}
		v.node = object.member(p[i+1 : j])
		if v.hides && object == nodeTop {
			v.shape.member(v.node, p[i+1:j])
		}
		if i = j + 2; p[i] == ' ' && i+1 < len(p) {
			i++
		}
		if v.node != nodeNone {
			v.state = atValue
			return v.readValue(p, i)
		}
		end := simpleEnd(p, i)
		if end < 0 {
			v.state = atValue
			return i
		}
		i = end
	}
	return i
}

// simpleEnd returns where in p, from i, a value ends that is a string without
// escapes or a scalar, and wholly in p. It is -1 for any other.
func simpleEnd(p []byte, i int) int {
	switch p[i] {
	case '"':
		if j := stringEnd(p, i+1); j < len(p) && p[j] == '"' {
			return j + 1
		}
	case 'n', 't', 'f', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if j := scalarEnd(p, i); j < len(p) {
			return j
		}
	}
	return -1
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

// elements reports whether the value is one of an array.
func (v *values) elements() bool { return v.path[v.open-1]&inArray != 0 }

func (v *values) beginObject() {
	v.shape.object(v.node, v.open)
	switch {
	case !v.node.hasMembers() || v.open == len(v.path):
		v.pass()
	default:
		v.failed = v.failed || v.node == nodeFault
		v.answers = v.answers || v.node == nodeChoices || v.node == nodeCandidates
		v.enter(v.node, atName)
	}
}

func (v *values) beginArray() {
	v.shape.list(v.node, v.open)
	if v.node == nodeNone || v.node == nodeArgs || v.elements() || v.open == len(v.path) {
		v.pass()
		return
	}
	v.enter(v.node|inArray, atValue)
}

// pass begins a value that is passed over.
func (v *values) pass() {
	v.piece = false
	v.deep = 1
	v.state = inDeep
}

// enter begins the members or the elements of a value.
func (v *values) enter(n node, s state) {
	v.path[v.open] = n
	v.open++
	v.state = s
}

// leave ends a value with members or elements.
func (v *values) leave() {
	v.open--
	if v.open > 0 {
		v.proceed()
		return
	}
	v.commit()
	v.shape.values++
	v.state = atTop
}

// proceed goes on after a value.
func (v *values) proceed() {
	v.state = atName
	if n := v.path[v.open-1]; n&inArray != 0 {
		v.node = n &^ inArray
		v.state = atValue
	}
}

func (v *values) beginScalar(p []byte, i int) int {
	v.shape.scalar(v.node, v.open)
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
	case v.node == nodeNone:
	case v.node.isNumber():
		v.number(v.node, b)
	case v.node.isWord() && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		v.keep(b)
	}
	v.proceed()
}

// keep keeps a word that the value is.
func (v *values) keep(b []byte) {
	var w *word
	switch v.node {
	case nodeFault:
		v.failed = v.failed || len(b) > 0
		return
	case nodeFinish:
		if len(b) > 0 {
			v.ends++
		}
		return
	case nodeType:
		w = &v.kind
	case nodeCode:
		w = &v.code
	case nodeFaultType:
		w = &v.faultKind
	case nodeFaultCode:
		w = &v.faultCode
	}
	w.n = 0
	w.add(b)
}

// readDeep reads on in a value that is passed over.
func (v *values) readDeep(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case '"':
			v.state = inDeepString
			return i + 1
		case '{', '[':
			v.deep++
		case '}', ']':
			v.deep--
			if v.deep == 0 {
				v.proceed()
				return i + 1
			}
		}
	}
	return i
}

// scalarEnd returns where in p, from i, a scalar ends, or the length of p.
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
		w := binary.LittleEndian.Uint64(b)
		n -= bits.OnesCount64(w >> 7 &^ (w >> 6) & eachByte)
	}
	for _, c := range b {
		n -= int(c >> 7 &^ (c >> 6) & 1) // the bits of a byte that goes on with a character
	}
	return n
}
