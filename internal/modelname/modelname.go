// Package modelname checks the names of models.
package modelname

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is how long a name may be.
const MaxBytes = 512

// Valid reports whether a text may be a name: files, headers and logs can hold it.
func Valid(name string) bool {
	return name != "" && len(name) <= MaxBytes && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Check returns what is wrong with the name of a model, or nil.
func Check(name string) error {
	if !Valid(name) {
		return fmt.Errorf("ratelimit: model %.40q: a name must have 1 to %d bytes of UTF-8, and no control characters", name, MaxBytes)
	}
	return nil
}
