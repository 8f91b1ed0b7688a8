package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
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

// refuse records a fault at the place of a node.
func (d *Document) refuse(at *yaml.Node, format string, args ...any) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, nodeFault{Fault: Fault{d.file, at.Line, at.Column, "", fmt.Sprintf(format, args...)}})
	}
}

// checkText finds faults that concern bytes, and not YAML.
func (d *Document) checkText(maxBytes int) {
	if len(d.text) > maxBytes {
		d.refuse(&yaml.Node{Line: 1, Column: 1}, "the file is larger than %d bytes, which is the most that is allowed", maxBytes)
		return
	}
	number := 0
	for line := range strings.Lines(d.text) {
		number++
		if !utf8.ValidString(line) {
			d.refuse(&yaml.Node{Line: number, Column: 1}, "the line is not UTF-8, which it must be")
		}
	}
}
