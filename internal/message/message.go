// Package message writes the texts of errors for people.
package message

import "strings"

// Plain returns the text of an error without "ratelimit: ", which errors of this module
// begin with, so that the text can stand inside another message.
func Plain(err error) string { return strings.TrimPrefix(err.Error(), "ratelimit: ") }
