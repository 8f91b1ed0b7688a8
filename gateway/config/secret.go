package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that must not be seen. It is read from the environment or from a file, and it
// formats as "[secret]" with every verb, in JSON and in logs.
type Secret struct{ value string }

// NewSecret returns a secret that holds a text.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the text of the secret; "" where none is set.
func (s Secret) Reveal() string { return s.value }

// String returns "[secret]", or "" where none is set.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[secret]"
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns, with every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String, quoted.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
