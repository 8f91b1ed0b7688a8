package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Screen shows lines. On a terminal they replace the lines that it has shown before;
// elsewhere they follow them.
type Screen struct {
	w        *Writer
	terminal bool
	rows     func() int // how many rows the terminal has; 0 if that is unknown
	shown    int        // how many lines the next ones replace
}

// NewScreen returns a screen that has shown nothing.
func NewScreen(w *Writer) *Screen { return &Screen{w: w, terminal: w.Terminal(), rows: w.Rows} }

// Terminal reports whether lines replace the ones before.
func (s *Screen) Terminal() bool { return s.terminal }

// Columns returns how many columns the screen has; 0 is any number.
func (s *Screen) Columns() int { return s.w.Columns() }

// Show shows lines that the next call replaces. It shows as many as the terminal has rows
// for, since lines that have scrolled away could not be replaced.
func (s *Screen) Show(lines []string) error {
	if s.terminal {
		lines = cutRows(lines, s.rows())
	}
	return s.Leave(lines)
}

// Print prints lines above those that are shown.
func (s *Screen) Print(lines []string) error { return s.w.Lines(lines) }

// cutRows leaves out the lines for which there are no rows, and says how many they are. The
// cursor needs a row too.
func cutRows(lines []string, rows int) []string {
	if rows == 0 || len(lines) < rows {
		return lines
	}
	room := max(rows-2, 0)
	return append(slices.Clone(lines[:room]), fmt.Sprintf("(%d more lines, for which the terminal has no rows)", len(lines)-room))
}

// Leave shows lines that stay, all of them.
func (s *Screen) Leave(lines []string) error {
	if !s.terminal {
		return s.w.Lines(lines)
	}
	var text strings.Builder
	text.WriteString("\x1b[?7l") // cuts long lines instead of wrapping them
	if s.shown > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", s.shown) // moves the cursor up
	}
	for _, line := range lines {
		text.WriteString("\x1b[K" + s.w.shown(line) + "\n") // clears the line first: behind one that is full, the last column would be cleared
	}
	text.WriteString("\x1b[J\x1b[?7h") // clears the lines below, and wraps again
	s.shown = len(lines)
	_, err := io.WriteString(s.w.to, text.String())
	return err
}
