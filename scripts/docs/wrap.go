package main

import (
	"strings"
	"unicode/utf8"
)

const width = 118 // of a line

// wrap returns a text in lines of a width, all but the first of which begin with an indent.
func wrap(text, indent string) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String() + "\n"
}
