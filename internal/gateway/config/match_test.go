package config

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"gpt-6", "gpt-6", true}, {"gpt-6", "gpt-6x", false}, {"gpt-6*", "gpt-6", true}, {"gpt-6*", "gpt-6-astra", true},
		{"*", "", true}, {"*", "x", true}, {"*mini", "gpt-mini", true}, {"*mini", "gpt-mini-2", false},
		{"a*a", "a", false}, {"a*b*c", "a-b-b-c", true}, {"a.c", "abc", false}, {"[a]", "a", false},
	} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.name, c.pattern, got)
		}
	}
}

// A pattern matches the same names as the regular expression with .* in place of each *.
func TestMatchIsTheRegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*]{0,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab.]{0,10}`).Draw(t, "name")
		expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		if got, want := match(pattern, name), regexp.MustCompile(expression).MatchString(name); got != want {
			t.Fatalf("%q matches %q: got %v, want %v", name, pattern, got, want)
		}
	})
}
