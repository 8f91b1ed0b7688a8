// Package argument checks the arguments of options. An invalid argument is a mistake in the program,
// so the check panics: the mistake shows when the program starts.
package argument

import (
	"fmt"
	"time"
)

// Function panics if the option with a name was not given its function.
func Function(name string, given bool) {
	if !given {
		panic(fmt.Sprintf("ratelimit: %s needs a function: it is nil", name))
	}
}

// Duration panics if the duration of the option with a name is negative.
func Duration(name string, d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("ratelimit: %s(%v): it must not be negative", name, d))
	}
}
