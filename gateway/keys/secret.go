package keys

import (
	"crypto/rand"
	"encoding/base32"
)

// The form of a key. All of it may stand in a header and in a URL.
const (
	prefix     = "rl-"
	idSize     = 10
	secretSize = 32 // 160 bits
	alphabet   = "abcdefghijklmnopqrstuvwxyz234567"
)

var base = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// random returns so many characters of five random bits each.
func random(size int) string {
	bytes := make([]byte, (size*5+7)/8)
	rand.Read(bytes)
	return base.EncodeToString(bytes)[:size]
}

func join(id, secret string) string { return prefix + id + "-" + secret }

// split returns the parts of what has the form of a key.
func split(key string) (id, secret string, ok bool) {
	const dash = len(prefix) + idSize
	if len(key) != dash+1+secretSize || key[:len(prefix)] != prefix || key[dash] != '-' {
		return "", "", false
	}
	return key[len(prefix):dash], key[dash+1:], true
}

func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(s) == idSize
}

// Is reports whether a text has the form of a key.
func Is(text string) bool {
	_, _, ok := split(text)
	return ok
}
