package docs

import (
	"regexp"
	"testing"
	"unicode/utf8"
)

const longestLine = 120

const longestREADME = 130

var url = regexp.MustCompile(`https?://\S+`)

// A line of a document has at most 120 characters, URLs aside.
func TestLinesAreShort(t *testing.T) {
	for _, d := range documents(t) {
		for i, line := range d.lines {
			if n := utf8.RuneCountInString(url.ReplaceAllString(line, "")); n > longestLine {
				t.Errorf("%s:%d has %d characters: want at most %d", d.path, i+1, n, longestLine)
			}
		}
	}
}

// The README is read in a minute: everything else has its place in docs.
func TestREADMEIsShort(t *testing.T) {
	for _, d := range documents(t) {
		if d.path == "README.md" && len(d.lines) > longestREADME {
			t.Errorf("the README has %d lines: want at most %d", len(d.lines), longestREADME)
		}
	}
}
