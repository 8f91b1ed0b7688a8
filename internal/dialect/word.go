package dialect

import "unicode/utf8"

// maxWord is how many bytes of a word are kept. Every name that matters is shorter.
const maxWord = 64

// word is the beginning of a name, a number or a code.
type word struct {
	n uint8
	b [maxWord]byte
}

func (w *word) add(b []byte) { w.n += uint8(copy(w.b[w.n:], b)) }

func (w *word) addRune(r rune) {
	var b [utf8.UTFMax]byte
	w.add(utf8.AppendRune(b[:0], r))
}

func (w *word) bytes() []byte { return w.b[:w.n] }
