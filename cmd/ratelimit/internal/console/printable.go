// Package console is how the commands speak to people: text that may go to a terminal, tables
// that fit it, colours, progress, and questions.
package console

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text in which nothing can command a terminal: control characters, the
// characters that turn the direction of text around, and bytes that are no UTF-8 are written as
// escapes, such as \x1b. Names of models and projects come from clients, who may choose any.
func Printable(text string) string {
	if !strings.ContainsFunc(text, commands) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case commands(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case commands(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// commands reports whether a character does more than to be shown: a control character, a line or
// paragraph separator, a sign of the direction of text, or one of the marks of styles.
func commands(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\ufeff' || isMark(r)
}
