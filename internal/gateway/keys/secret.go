package keys

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// The form of a key. Headers and URLs can hold all of its characters.
const (
	Prefix     = "rl-" // the beginning of every key
	idSize     = 10
	secretSize = 32 // 160 bits
	alphabet   = "abcdefghijklmnopqrstuvwxyz234567"

	dash = len(Prefix) + idSize  // the index of the dash between id and secret
	Size = dash + 1 + secretSize // the length of a key in bytes
)

var base = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// random returns a text of a given length. Each character has five random bits.
func random(size int) string {
	bytes := make([]byte, (size*5+7)/8)
	rand.Read(bytes)
	return base.EncodeToString(bytes)[:size]
}

func join(id, secret string) string { return Prefix + id + "-" + secret }

// split returns the parts of a key. ok is false for a text in another form.
func split(key string) (id, secret string, ok bool) {
	if !Is(key) {
		return "", "", false
	}
	return key[len(Prefix):dash], key[dash+1:], true
}

func isID(s string) bool { return len(s) == idSize && inAlphabet(s) }

// inAlphabet reports whether all characters of a text are in the alphabet.
func inAlphabet[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Is reports whether a text has the form of a key.
func Is[T string | []byte](text T) bool {
	return len(text) == Size && string(text[:len(Prefix)]) == Prefix && text[dash] == '-' &&
		inAlphabet(text[len(Prefix):dash]) && inAlphabet(text[dash+1:])
}

// Index returns the index of the first key in a text, by its form, or -1.
func Index(text string) int {
	for from := 0; len(text)-from >= Size; from += len(Prefix) {
		next := strings.Index(text[from:], Prefix)
		if next < 0 || len(text)-from-next < Size {
			return -1
		}
		from += next
		if Is(text[from : from+Size]) {
			return from
		}
	}
	return -1
}
