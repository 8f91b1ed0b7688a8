package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is something that must not be seen: it is read from the environment or from a
// file, and formats as "[secret]" whatever the verb, in JSON and in logs.
type Secret struct{ value string }

// NewSecret returns a secret.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns what it is; "" where none is set.
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

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String, quoted.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
