// Package message formats the parts of error messages.
package message

import (
	"fmt"
	"strings"
	"time"
)

// Plain returns the text of an error without the prefix "ratelimit: ", which errors of
// this module have, so that the text can be a part of another message.
func Plain(err error) string { return strings.TrimPrefix(err.Error(), "ratelimit: ") }

// Detail returns the text of an error without the error that it begins with, such as a
// sentinel that it wraps.
func Detail(err, first error) string { return strings.TrimPrefix(err.Error(), first.Error()+": ") }

// Quote returns a text as errors show it: in quotes, and at most 60 characters of it.
func Quote(text string) string { return fmt.Sprintf("%.60q", text) }

// Wait returns a wait as messages show it: rounded up to whole milliseconds.
func Wait(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
