package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// screen shows lines. On a terminal they replace the lines that it has shown before;
// elsewhere they follow them.
type screen struct {
	w        io.Writer
	terminal bool
	rows     func() int // how many rows the terminal has; 0 if that is unknown
	shown    int        // how many lines the next ones replace
}

func newScreen(w io.Writer) *screen {
	file, ok := w.(*os.File)
	return &screen{w: w, terminal: ok && isTerminal(file), rows: func() int { return rowsOf(file) }}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show shows lines that the next call replaces. It shows as many as the terminal has rows
// for, since lines that have scrolled away could not be replaced.
func (s *screen) show(lines []string) error {
	if s.terminal {
		lines = cut(lines, s.rows())
	}
	return s.leave(lines)
}

// cut leaves out the lines for which there are no rows, and says how many they are. The
// cursor needs a row too.
func cut(lines []string, rows int) []string {
	if rows == 0 || len(lines) < rows {
		return lines
	}
	room := max(rows-2, 0)
	return append(slices.Clone(lines[:room]), fmt.Sprintf("(%d more lines, for which the terminal has no rows)", len(lines)-room))
}

// leave shows lines that stay, all of them.
func (s *screen) leave(lines []string) error {
	if !s.terminal {
		return printLines(s.w, lines)
	}
	var text strings.Builder
	text.WriteString("\x1b[?7l") // cuts long lines instead of wrapping them
	if s.shown > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", s.shown) // moves the cursor up
	}
	for _, line := range lines {
		text.WriteString(line + "\x1b[K\n") // clears the rest of the line
	}
	text.WriteString("\x1b[J\x1b[?7h") // clears the lines below, and wraps again
	s.shown = len(lines)
	_, err := io.WriteString(s.w, text.String())
	return err
}
