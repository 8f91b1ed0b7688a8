package console

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"gpt-6-luna":           "gpt-6-luna",
		"日本 é …":               "日本 é …",
		"\x1b]0;owned\x07":     `\x1b]0;owned\x07`,
		"a\x1b[2Jb":            `a\x1b[2Jb`,
		"a\u009b2Jb":           `a\x9b2Jb`, // the same in one character
		"a\nb\tc\r":            `a\nb\tc\x0d`,
		"\x7f":                 `\x7f`,
		"\u202edlrow":          `\u202edlrow`,
		"\u2028":               `\u2028`,
		"\xff\xc3(":            `\xff\xc3(`,
		Bad("red"):             `\ue003red\ue000`,
		"\ufeffa\u200b\u2066b": "\\ufeffa\u200b\\u2066b",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Nothing that is written commands a terminal, even if it comes in pieces.
func TestWriter(t *testing.T) {
	for _, pieces := range [][]string{
		{"a\tb\x1b[31m\u009bm\né日\n"},
		{"a\tb\x1b", "[31m\xc2", "\x9bm\n\xc3", "\xa9\xe6", "\x97", "\xa5\n"},
	} {
		var text strings.Builder
		w := NewWriter(&text)
		for _, piece := range pieces {
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got, want := text.String(), "a\tb\\x1b[31m\\x9bm\né日\n"; got != want {
			t.Errorf("%q: %q; want %q", pieces, got, want)
		}
	}
}

// Styles are left out where there is no terminal, colours if they are not wanted, and only our own are
// written.
func TestColours(t *testing.T) {
	for _, c := range []struct {
		styles, colours bool
		want            string
	}{
		{false, false, "chosen bad \\x1b[31m\n"},
		{true, false, "\x1b[7mchosen\x1b[0m bad\x1b[0m \\x1b[31m\n"},
		{true, true, "\x1b[7mchosen\x1b[0m \x1b[31mbad\x1b[0m \\x1b[31m\n"},
	} {
		var text strings.Builder
		w := NewWriter(&text)
		if w.styles || w.colours {
			t.Error("styles go to what is no terminal")
		}
		w.styles, w.colours = c.styles, c.colours
		w.Lines([]string{Chosen("chosen") + " " + Bad("bad") + " \x1b[31m"})
		if text.String() != c.want {
			t.Errorf("%+v: %q", c, text.String())
		}
	}
}

func TestJSON(t *testing.T) {
	var text strings.Builder
	if err := NewWriter(&text).JSON(map[string]string{"a<b": "\x1b[2J\u009b\x7f\u202e日"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"a<b\": \"\\u001b[2J\\u009b\\u007f\\u202e日\"\n}\n"; text.String() != want {
		t.Errorf("got %s", text.String())
	}
}

func plainLines(lines []string) string { return "\n" + unstyled(strings.Join(lines, "\n")) }

func TestTable(t *testing.T) {
	table := NewTable(Text("name").Shortened(8), Number("n"), Number("none"), Number("rare").Leaves(1), Text("").Below(), Text("models").Below())
	table.Add("a", "1", "-", "12", "it waits since a long time for the tokens of a minute", "-")
	table.AddStyled(Bad, "a-very-long-\x1b-name", "1,000", "-", "345", "-", "x*, y")
	for width, want := range map[int]string{
		0: `
name                       n  rare                                                         models
a                          1    12  it waits since a long time for the tokens of a minute  -
a-very-long-\x1b-name  1,000   345  -                                                      x*, y`,
		34: `
name                       n  rare
a                          1    12
    it waits since a long time for
    the tokens of a minute
a-very-long-\x1b-name  1,000   345
    models: x*, y`,
		24: `
name             n  rare
a                1    12
    it waits since a
    long time for the
    tokens of a minute
a-very-lon…  1,000   345
    models: x*, y`,
		16: `
name           n
a              1
    it waits
    since a long
    time for the
    tokens of a
    minute
a-very-l…  1,000
    models: x*,
    y`,
	} {
		got := plainLines(table.Lines(width))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
	if got := table.Lines(0)[2]; !strings.HasPrefix(got, string(red)) {
		t.Errorf("no style: %q", got)
	}
}

// Wide characters take two columns.
func TestTableOfWideCharacters(t *testing.T) {
	table := NewTable(Text("a").ShortenedAtStart(4), Text("b"))
	table.Add("日本日本", "x")
	table.Add("é", "y")
	if got, want := plainLines(table.Lines(0)), "\na         b\n日本日本  x\né         y"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := plainLines(table.Lines(8)), "\na      b\n…日本  x\né      y"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A table without rows is its head; a list has none.
func TestEmptyTable(t *testing.T) {
	if got := plainLines(NewTable(Text("a"), Text("b")).Lines(80)); got != "\na  b" {
		t.Errorf("%q", got)
	}
	if got := NewList(2).Lines(80); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// On a terminal, lines replace the lines before them.
func TestScreen(t *testing.T) {
	var text strings.Builder
	s := NewScreen(NewWriter(&text))
	if s.terminal {
		t.Error("a buffer is no terminal")
	}
	s.terminal = true
	for _, lines := range [][]string{{"a\x1b", "b"}, {"c"}} {
		if err := s.Show(lines); err != nil {
			t.Fatal(err)
		}
	}
	want := "\x1b[?7l\x1b[Ka\\x1b\n\x1b[Kb\n\x1b[J\x1b[?7h" + "\x1b[?7l\x1b[2A\x1b[Kc\n\x1b[J\x1b[?7h"
	if text.String() != want {
		t.Errorf("got %q", text.String())
	}
}

// Lines for which a terminal has no rows are left out, so that nothing scrolls. The last lines
// are all shown.
func TestScreenOfFewRows(t *testing.T) {
	lines := []string{"a", "b", "c", "d"}
	for rows, want := range map[int][]string{
		0: lines, // the number of rows is unknown
		1: {"(4 more lines, for which the terminal has no rows)"},
		2: {"(4 more lines, for which the terminal has no rows)"},
		4: {"a", "b", "(2 more lines, for which the terminal has no rows)"},
		5: lines, // the cursor is in the fifth row
		6: lines,
	} {
		if diff := cmp.Diff(want, cutRows(lines, rows)); diff != "" {
			t.Errorf("%d rows (-want +got):\n%s", rows, diff)
		}
	}
}

// What takes a second or less shows nothing; what takes longer shows a line, which is removed.
func TestProgress(t *testing.T) {
	for takes, want := range map[time.Duration]string{
		time.Second - 1:         "",
		2500 * time.Millisecond: "\r\x1b[Kwaiting (1 s)\r\x1b[Kwaiting (2 s)\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			w := NewWriter(&text)
			w.Progress("nothing is shown where there is no terminal")()
			end := w.progress("waiting")
			time.Sleep(takes)
			end()
			if text.String() != want {
				t.Errorf("%v: %q", takes, text.String())
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, " YES \n": nil, "n\n": ErrDeclined, "\n": ErrDeclined, "": ErrDeclined, "yeah\n": ErrDeclined} {
		var text strings.Builder
		if err := NewWriter(&text).confirm(strings.NewReader(answer), "Really?"); !errors.Is(err, want) {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.HasPrefix(text.String(), "Really? [y/N] ") {
			t.Errorf("%q", text.String())
		}
	}
	var text strings.Builder
	if err := NewWriter(&text).Confirm(strings.NewReader("n\n"), "Really?"); err != nil || text.Len() > 0 {
		t.Errorf("without a terminal: %v, %q", err, text.String())
	}
}

func TestColumns(t *testing.T) {
	w := NewWriter(&strings.Builder{})
	for value, want := range map[string]int{"": 0, "80": 80, "-1": 0, "wide": 0} {
		t.Setenv("COLUMNS", value)
		if got := w.Columns(); got != want || w.Rows() != 0 {
			t.Errorf("%q: %d", value, got)
		}
	}
}
