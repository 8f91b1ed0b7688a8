// Package argument checks the arguments of options. An invalid one is a mistake in the program,
// so it panics, and the mistake shows when the program starts.
package argument

import (
	"fmt"
	"time"
)

// Function panics if the option was not given its function.
func Function(name string, given bool) {
	if !given {
		panic(fmt.Sprintf("ratelimit: %s needs a function: it is nil", name))
	}
}

// Duration panics if the option's duration is negative.
func Duration(name string, d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("ratelimit: %s(%v): it must not be negative", name, d))
	}
}
