package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
)

// The errors of a question.
var (
	ErrNoTerminal = errors.New("there is no terminal to ask in: --yes makes the change without a question")
	ErrDeclined   = errors.New("nothing was changed")
)

// Confirm asks a question, and returns nil if the answer is yes.
func (w *Writer) Confirm(from io.Reader, question string) error {
	file, ok := from.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) {
		return ErrNoTerminal
	}
	return w.confirm(from, question)
}

func (w *Writer) confirm(from io.Reader, question string) error {
	fmt.Fprintf(w, "%s [y/N] ", question)
	answer, err := bufio.NewReader(from).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(w)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return ErrDeclined
}
