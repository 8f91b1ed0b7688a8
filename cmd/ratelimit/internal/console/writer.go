package console

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
)

// Writer writes text to a terminal, a file or a pipe. Whatever a text contains, it commands no
// terminal: see [Printable]. Only ends of lines and tabs pass.
type Writer struct {
	to      io.Writer
	file    *os.File // nil if to is none
	styles  bool     // bold, faint and turned are shown
	colours bool     // colours are

	mu   sync.Mutex
	rest []byte // the first bytes of a character of which the others were not written yet
}

// NewWriter returns a Writer. Styles go to a terminal alone, and not if it is dumb; colours not if the
// environment has NO_COLOR, whatever its value.
func NewWriter(to io.Writer) *Writer {
	file, _ := to.(*os.File)
	w := &Writer{to: to, file: file}
	w.styles = w.Terminal() && os.Getenv("TERM") != "dumb"
	w.colours = w.styles && os.Getenv("NO_COLOR") == ""
	return w
}

// Of returns the Writer that a command writes to.
func Of(w io.Writer) *Writer {
	if ours, ok := w.(*Writer); ok {
		return ours
	}
	return NewWriter(w)
}

// Terminal reports whether a person is likely to read along.
func (w *Writer) Terminal() bool { return w.file != nil && term.IsTerminal(w.file.Fd()) }

// File returns the file that is written to, or nil.
func (w *Writer) File() *os.File { return w.file }

// Columns returns how many columns there are: those of the terminal, or else those that the
// variable COLUMNS names. 0 means that lines may have any length.
func (w *Writer) Columns() int {
	if w.Terminal() {
		if columns, _, err := term.GetSize(w.file.Fd()); err == nil && columns > 0 {
			return columns
		}
	}
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	return max(columns, 0)
}

// Rows returns how many rows the terminal has, or 0 if there is none.
func (w *Writer) Rows() int {
	if !w.Terminal() {
		return 0
	}
	_, rows, err := term.GetSize(w.file.Fd())
	if err != nil {
		return 0
	}
	return rows
}

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	whole := len(text)
	for tail := 1; tail < utf8.UTFMax && tail <= len(text); tail++ {
		if first := text[len(text)-tail:]; utf8.RuneStart(first[0]) {
			if !utf8.FullRune(first) {
				whole -= tail
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, w.shown(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown returns a text as the terminal gets it.
func (w *Writer) shown(text string) string {
	var b strings.Builder
	start := 0
	for i, r := range text {
		if r != '\n' && r != '\t' && !isMark(r) {
			continue
		}
		b.WriteString(Printable(text[start:i]))
		start = i + utf8.RuneLen(r)
		switch {
		case !isMark(r):
			b.WriteRune(r)
		case w.colours || w.styles && !isColour(r):
			b.WriteString(codes[r-plain])
		}
	}
	b.WriteString(Printable(text[start:]))
	return b.String()
}

// Text returns lines as the terminal gets them, for a program that draws the whole screen itself.
func (w *Writer) Text(lines []string) string { return w.shown(strings.Join(lines, "\n")) }

// Lines writes lines.
func (w *Writer) Lines(lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
