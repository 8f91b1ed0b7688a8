package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// screen shows lines in place of those that it has shown before, where it is a
// terminal; elsewhere one after the other.
type screen struct {
	w        io.Writer
	terminal bool
	rows     func() int // that the terminal has; 0: it does not tell
	shown    int
}

func newScreen(w io.Writer) *screen {
	file, ok := w.(*os.File)
	return &screen{w: w, terminal: ok && isTerminal(file), rows: func() int { return rowsOf(file) }}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show shows lines that others are to take the place of: as many as there is room for,
// since what has scrolled away could not be replaced.
func (s *screen) show(lines []string) error {
	if s.terminal {
		lines = cut(lines, s.rows())
	}
	return s.leave(lines)
}

// cut leaves out lines that do not fit into some rows, of which the cursor takes one, and
// says how many.
func cut(lines []string, rows int) []string {
	if rows == 0 || len(lines) < rows {
		return lines
	}
	room := max(rows-2, 0)
	return append(slices.Clone(lines[:room]), fmt.Sprintf("(%d more lines, for which the terminal has no rows)", len(lines)-room))
}

// leave shows the last lines, all of them.
func (s *screen) leave(lines []string) error {
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
