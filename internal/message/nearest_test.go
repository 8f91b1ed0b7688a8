package message

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"listen", "keys", "token", "max_rpm", "max_tpm"}
	for name, want := range map[string]string{
		"listne": "listen", "liste": "listen", "listenn": "listen", "key": "keys", "tokn": "token", "max_rmp": "max_rpm",
		"": "", "colour": "", "x": "", strings.Repeat("listen", 20): "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"a": `"a"`, "a\nb": `"a\nb"`, strings.Repeat("é", 61): `"` + strings.Repeat("é", 60) + `"`} {
		if got := Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
