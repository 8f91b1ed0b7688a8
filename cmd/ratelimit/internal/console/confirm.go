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

// ErrDeclined is the error of a question that was not answered with yes.
var ErrDeclined = errors.New("nothing was changed")

// Confirm asks a question in a terminal, and returns nil if the answer is yes. Where there is no
// terminal, such as in a script, nobody can answer: the command line itself is the answer.
func (w *Writer) Confirm(from io.Reader, question string) error {
	if file, ok := from.(*os.File); !ok || !term.IsTerminal(file.Fd()) {
		return nil
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
