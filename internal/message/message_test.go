package message

import (
	"errors"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"ratelimit: no such key":            "no such key",
		"ratelimit: file: ratelimit: twice": "file: ratelimit: twice",
		"unexpected EOF":                    "unexpected EOF",
		"ratelimit":                         "ratelimit",
	} {
		if got := Plain(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
