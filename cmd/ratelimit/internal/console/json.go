package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes a value as indented JSON. JSON itself leaves some characters as they are that can
// command a terminal: they are written as escapes, which mean the same.
func (w *Writer) JSON(v any) error { return w.json(v, "  ") }

// JSONLine is JSON on one line.
func (w *Writer) JSONLine(v any) error { return w.json(v, "") }

func (w *Writer) json(v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe bytes.Buffer
	for _, r := range text.String() {
		if r != '\n' && commands(r) {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteRune(r)
		}
	}
	_, err := io.Copy(w, &safe)
	return err
}
