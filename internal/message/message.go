// Package message writes the texts of errors for people.
package message

import (
	"fmt"
	"strings"
	"time"
)

// Plain returns the text of an error without "ratelimit: ", which errors of this module
// begin with, so that the text can stand inside another message.
func Plain(err error) string { return strings.TrimPrefix(err.Error(), "ratelimit: ") }

// Detail returns the text of an error without the error that it begins with, such as a
// sentinel that it wraps.
func Detail(err, first error) string { return strings.TrimPrefix(err.Error(), first.Error()+": ") }

// Quote returns a text as errors show it: in quotes, and 60 characters of it at most.
func Quote(text string) string { return fmt.Sprintf("%.60q", text) }

// Wait returns a wait as messages show it: in whole milliseconds, and not too short.
func Wait(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
