package console

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Width returns how many columns of a terminal a text takes.
func Width(text string) int { return ansi.StringWidth(unstyled(text)) }

// cutEnd returns a text that is cut to a width, which then ends with an ellipsis. A width of 0 or less is
// any width.
func cutEnd(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	return ansi.Truncate(text, width, "…")
}

// cutStart is cutEnd for texts whose ends matter more.
func cutStart(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	for Width(text) >= width {
		_, first := utf8.DecodeRuneInString(text)
		text = text[first:]
	}
	return "…" + text
}

// Cut returns a text that is cut at its end to a width.
func Cut(text string, width int) string { return cutEnd(text, width) }

// Wrap returns a text in lines of at most width columns, which begin with an indent; a width of 0 is any
// width. Lines end between words, if these are not too long for a line.
func Wrap(text string, width int, indent string) []string {
	if width <= 0 {
		return []string{indent + text}
	}
	lines := strings.Split(ansi.Wrap(text, max(width-Width(indent), 10), " "), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(indent+line, " ")
	}
	return lines
}

// Sentences returns texts, each wrapped to a width.
func Sentences(width int, texts ...string) (lines []string) {
	for _, text := range texts {
		lines = append(lines, Wrap(Printable(text), width, "")...)
	}
	return lines
}
