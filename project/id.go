package project

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// The bounds of a project's id.
const (
	MaxID    = 128 // bytes
	MaxNames = 8
)

// CheckID returns what is wrong with the id of a project and what is allowed, or nil. An id is
// a path of 1 to 8 names with slashes between them, such as "acme/search/alice", of 1 to 128 bytes
// of visible ASCII. No name is empty, *, "." or "..".
func CheckID(id string) error {
	if err := checkPath(id); err != nil {
		return err
	}
	if IsTemplate(id) {
		return fmt.Errorf("%w: the project id %q has the name *: that stands for every name, in limits alone", ErrInvalid, id)
	}
	return nil
}

// CheckPath returns what is wrong with the path of a project or of a template, such as "acme/*", or
// nil. The path * alone is none: [Config].Default is the limit of every project.
func CheckPath(path string) error {
	if path == every {
		return fmt.Errorf("%w: the project id * alone: a template has two names at least, such as acme/* or */*, and every project has the default limit", ErrInvalid)
	}
	return checkPath(path)
}

// checkPath is CheckPath that lets * pass.
func checkPath(id string) error {
	if id == "" {
		return fmt.Errorf("%w: the project id is empty: it must have 1 to %d visible ASCII characters", ErrInvalid, MaxID)
	}
	if len(id) > MaxID {
		return fmt.Errorf("%w: the project id has %d bytes: it may have %d", ErrInvalid, len(id), MaxID)
	}
	if i := not(visible, id); i < len(id) {
		r, _ := utf8.DecodeRuneInString(id[i:])
		return fmt.Errorf("%w: the project id %q has %q at %d: only visible ASCII characters are allowed, and no spaces", ErrInvalid, id, r, i)
	}
	if id[0] == '/' || id[len(id)-1] == '/' || strings.Contains(id, "//") {
		return fmt.Errorf("%w: the project id %q has an empty name: it must have names with single slashes between them", ErrInvalid, id)
	}
	for name := range strings.SplitSeq(id, "/") {
		if name == "." || name == ".." {
			return fmt.Errorf("%w: the project id %q has the name %q: in the path of an address, that would mean another project", ErrInvalid, id, name)
		}
	}
	if depth := strings.Count(id, "/") + 1; depth > MaxNames {
		return fmt.Errorf("%w: the project id %q has %d names: it may have %d", ErrInvalid, id, depth, MaxNames)
	}
	return nil
}

// Kinds of bytes.
const (
	visible   = 1 << iota // may stand in an id
	unescaped             // stands for itself in a key
)

var kinds = func() (kinds [256]byte) {
	for c := byte('!'); c <= '~'; c++ {
		kinds[c] = visible
		if url.PathEscape(string(c)) == string(c) {
			kinds[c] |= unescaped
		}
	}
	return kinds
}()

// not returns the index of the first byte that is not of a kind, or the length.
func not(kind byte, id string) int {
	for i := range len(id) {
		if kinds[id[i]]&kind == 0 {
			return i
		}
	}
	return len(id)
}

// keyOf returns what the keys of a project's counters begin with, and no other
// project's: that of its requests ends in "requests", that of its tokens in "tokens",
// that of its calls under way in "slots".
func keyOf(id string) string { return "project/" + url.PathEscape(id) + "/" }

// appendKey appends the key of a project's requests.
func appendKey(key []byte, id string) []byte {
	if not(unescaped, id) < len(id) {
		return append(append(key, keyOf(id)...), "requests"...)
	}
	key = append(key, "project/"...)
	key = append(key, id...)
	return append(key, "/requests"...)
}
