package project

import (
	"fmt"
	"net/url"
	"unicode/utf8"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

const maxID = 128

// CheckID returns what is wrong with the id of a project and what is allowed, or
// nil. An id has 1 to 128 bytes of visible ASCII.
func CheckID(id string) error {
	if id == "" {
		return fmt.Errorf("%w: the project id is empty: it must have 1 to %d visible ASCII characters", ErrInvalid, maxID)
	}
	if len(id) > maxID {
		return fmt.Errorf("%w: the project id has %d bytes: it may have %d", ErrInvalid, len(id), maxID)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			r, _ := utf8.DecodeRuneInString(id[i:])
			return fmt.Errorf("%w: the project id %q has %q at %d: only visible ASCII characters are allowed, and no spaces", ErrInvalid, id, r, i)
		}
	}
	return nil
}

// unescaped is what stands for itself in a key.
var unescaped = func() (set [256]bool) {
	for c := range 128 {
		set[c] = url.PathEscape(string(rune(c))) == string(rune(c))
	}
	return set
}()

// appendKey appends the key of a project's requests.
func appendKey(key []byte, id string) []byte {
	for i := range len(id) {
		if !unescaped[id[i]] {
			return append(append(key, (ratelimit.Projects{}).Key(id)...), "requests"...)
		}
	}
	key = append(key, "project/"...)
	key = append(key, id...)
	return append(key, "/requests"...)
}
