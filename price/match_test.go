package price_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/price"
)

// Patterns match as the regular expressions do that they stand for.
func TestMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab1*#")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab12")), 0, 10, -1).Draw(t, "name")
		want := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "#", `\d`).Replace(pattern) + "$").MatchString(name)
		if got := price.Matches(pattern, name); got != want {
			t.Fatalf("%s matches %s: %v, want %v", pattern, name, got, want)
		}
	})
}
