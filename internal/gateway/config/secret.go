package config

import (
	"fmt"
	"io"
)

// Secret is a text that nobody must see. It is read from the environment or from a file. With every
// verb, in JSON and in logs it is written as "[secret]".
type Secret struct{ value string }

// Reveal returns the text of the secret; "" where none is set.
func (s Secret) Reveal() string { return s.value }

// String returns "[secret]", or "" where none is set.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[secret]"
}

// Format writes what String returns, with every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns what String returns, for JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
