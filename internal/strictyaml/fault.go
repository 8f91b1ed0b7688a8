package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Fault is one thing that is wrong with a file, or that is valid but probably a mistake.
type Fault struct {
	File         string // the name of the file; empty if there is none
	Line, Column int    // from 1; 0 if the value is on the command line
	Path         string // the path of the value, such as projects.search.weight
	Problem      string // what is wrong, and what is allowed
}

// String returns the fault as text.
func (f Fault) String() string {
	text := f.Problem
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Line == 0 || f.File == "" {
		return text
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, text)
}

// nodeFault is a fault, and the index of the node that has it.
type nodeFault struct {
	Fault
	node int
}

// maxFaults is how many faults of a file are reported.
const maxFaults = 100

// Faults returns what is wrong with the file, in the order of its lines.
func (d *Document) Faults() []Fault { return byLine(d.faults) }

// Warnings returns what is valid but probably a mistake, in the order of the lines.
func (d *Document) Warnings() []Fault { return byLine(d.warnings) }

func byLine(all []nodeFault) []Fault {
	faults := make([]Fault, len(all))
	for i, n := range all {
		faults[i] = n.Fault
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// refuse records a fault at the byte of the text with an index.
func (d *Document) refuse(at int, format string, args ...any) {
	if len(d.faults) < maxFaults {
		line, column := d.position(at)
		d.faults = append(d.faults, nodeFault{Fault: Fault{d.file, line, column, "", fmt.Sprintf(format, args...)}})
	}
}

// position returns the line of the byte with an index, and its column in characters.
func (d *Document) position(at int) (line, column int) {
	before := d.text[:at]
	line = 1 + strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	return line, 1 + utf8.RuneCountInString(before[1+strings.LastIndexAny(before, "\r\n"):])
}

// maxLine is how many bytes a line of a generated file may have.
const maxLine = 4096

// checkText finds faults that concern bytes and lines, and not YAML.
func (d *Document) checkText() {
	if len(d.text) > d.form.MaxBytes {
		d.refuse(0, "the file is larger than %d bytes, which is the most that is allowed", d.form.MaxBytes)
		return
	}
	at := 0
	for line := range strings.Lines(d.text) {
		if !utf8.ValidString(line) {
			d.refuse(at, "the line is not UTF-8, which it must be")
		} else if d.form.Generated {
			d.checkLine(at, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		}
		at += len(line)
	}
}

// checkLine finds faults in a line of a generated file. at is the index of the line's first byte.
func (d *Document) checkLine(at int, line string) {
	if len(line) > maxLine {
		d.refuse(at, "a line of %d bytes: it must have %d at most", len(line), maxLine)
	}
	i := strings.IndexFunc(line, func(c rune) bool {
		return unicode.IsControl(c) || c >= 0x2028 && strings.ContainsRune("\u2028\u2029\ufeff\ufffe\uffff", c)
	})
	if i >= 0 {
		c, _ := utf8.DecodeRuneInString(line[i:])
		d.refuse(at+i, "%U: tabs, control characters and the like must be escaped, in double quotes", c)
	}
}
