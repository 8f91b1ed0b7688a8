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

// A limit of a model has another name than the same limit of a project, and users mix them up.
func TestNearestNameOfALimit(t *testing.T) {
	model, project := []string{"max_rpm", "max_tpm", "max_rpd"}, []string{"requests_per_minute", "tokens_per_minute", "tokens_per_day"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"max_rpm", project, "requests_per_minute"},
		{"tpm", project, "tokens_per_minute"},
		{"max_tpd", project, "tokens_per_day"},
		{"rpd", model, "max_rpd"},
		{"tokens_per_minute", model, "max_tpm"},
		{"tpm", []string{"listen"}, ""},
	} {
		if got := Nearest(c.name, c.names); got != c.want {
			t.Errorf("%q: got %q, want %q", c.name, got, c.want)
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
