package keys

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// The form of a key. All of it may stand in a header and in a URL.
const (
	Prefix     = "rl-" // with which a key begins
	idSize     = 10
	secretSize = 32 // 160 bits
	alphabet   = "abcdefghijklmnopqrstuvwxyz234567"

	dash = len(Prefix) + idSize  // stands between id and secret
	Size = dash + 1 + secretSize // bytes of a key
)

var base = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// random returns so many characters of five random bits each.
func random(size int) string {
	bytes := make([]byte, (size*5+7)/8)
	rand.Read(bytes)
	return base.EncodeToString(bytes)[:size]
}

func join(id, secret string) string { return Prefix + id + "-" + secret }

// split returns the parts of what has the form of a key.
func split(key string) (id, secret string, ok bool) {
	if !Is(key) {
		return "", "", false
	}
	return key[len(Prefix):dash], key[dash+1:], true
}

func isID(s string) bool { return len(s) == idSize && encoded(s) }

// encoded reports whether a text has characters of the alphabet alone.
func encoded[T string | []byte](s T) bool {
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
		encoded(text[len(Prefix):dash]) && encoded(text[dash+1:])
}

// Index returns where the first text that has the form of a key stands in another, or -1.
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
