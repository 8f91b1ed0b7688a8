// Package modelname checks the names of models.
package modelname

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the largest length of a name.
const MaxBytes = 512

// Valid reports whether a text may be the name of a model. Such a name fits into files, headers and
// logs.
func Valid(name string) bool {
	return name != "" && len(name) <= MaxBytes && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Check returns an error that says what a name must be, or nil if the name is valid.
func Check(name string) error {
	if !Valid(name) {
		return fmt.Errorf("ratelimit: model %.40q: a name must have 1 to %d bytes of UTF-8, and no control characters", name, MaxBytes)
	}
	return nil
}
