package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// screen shows lines in place of those that it has shown before, where it is a
// terminal; elsewhere one after the other.
type screen struct {
	w        io.Writer
	terminal bool
	shown    int
}

func newScreen(w io.Writer) *screen { return &screen{w: w, terminal: isTerminal(w)} }

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *screen) show(lines []string) error {
	if !s.terminal {
		return printLines(s.w, lines)
	}
	var text strings.Builder
	text.WriteString("\x1b[?7l") // lines that are too long are cut, not wrapped
	if s.shown > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", s.shown) // up
	}
	for _, line := range lines {
		text.WriteString(line + "\x1b[K\n") // and what was behind it is gone
	}
	text.WriteString("\x1b[J\x1b[?7h") // so is what was below
	s.shown = len(lines)
	_, err := io.WriteString(s.w, text.String())
	return err
}
