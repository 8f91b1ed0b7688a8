package modelname

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, valid := range map[string]bool{
		"gpt-4o":                        true,
		"projects/p/models/gemini@eu 1": true,
		strings.Repeat("é", MaxBytes/2): true,
		"":                              false,
		strings.Repeat("x", MaxBytes+1): false,
		"two\nlines":                    false,
		"null\x00":                      false,
		"next\u0085line":                false,
		"\xff":                          false,
	} {
		err := Check(name)
		if got := err == nil; got != valid || Valid(name) != valid {
			t.Errorf("%.40q: %v", name, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "ratelimit: model ") {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}
