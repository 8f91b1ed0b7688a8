// Package strictyaml reads the part of YAML that configuration files and state files need: mappings,
// lists and texts of one line. Anchors, aliases, tags, directives and duplicate keys are faults, since
// they can make a short text very large, or one text mean two things. A fault says where it is, what is
// wrong and what is allowed.
//
// Reading a file takes time and memory in proportion to its size.
package strictyaml

import (
	"fmt"
	"strings"
)

// A Form says what a kind of file may contain.
type Form struct {
	MaxBytes int // the largest size of a file; less than 4 GiB
	MaxParts int // the largest number of keys, values and signs together; 0 means any number

	// Generated is set for files that programs write. In such a file brackets must be closed on
	// their line. A line must have at most 4,096 bytes, and no tabs and control characters. Numbers
	// must have neither quotes nor underscores. A key may be on a line of its own, after a question
	// mark.
	Generated bool
}

// A Document is the content of a file, and the faults that were found in it.
type Document struct {
	file     string
	form     Form
	text     string
	nodes    []node // in the order of the file: a collection comes before its content
	faults   []nodeFault
	warnings []nodeFault
}

// A node is a text, a list, a mapping, or a missing value. A list is followed by its items, and a
// mapping by its keys, each followed by its value.
type node struct {
	kind  kind
	start uint32 // the index of the node's first byte in the text
	end   uint32 // of a text: the index after its last byte; of a list or mapping: the index of the node after its content
}

type kind uint8

const (
	absent kind = iota // the missing value of a key or a dash
	null
	plain // text without quotes
	quoted
	multiline // text of several lines, after | or >
	list
	mapping
)

// Parse reads the text of a file. name is the name of the file in faults. If the text has faults, the
// document has no content.
func Parse(name, text string, form Form) *Document {
	d := &Document{file: name, form: form, text: strings.TrimPrefix(text, "\ufeff")}
	if d.checkText(); len(d.faults) == 0 {
		d.parse()
	}
	if len(d.faults) > 0 {
		d.nodes = []node{{}}
	}
	return d
}

// Root returns the value that is the whole file.
func (d *Document) Root() Value { return Value{doc: d} }

// Blank reports whether the file has neither keys nor items.
func (d *Document) Blank() bool { return len(d.nodes) == 1 }

// after returns the index of the first node after node i and its content.
func (d *Document) after(i int) int {
	if n := d.nodes[i]; n.kind >= list {
		return int(n.end)
	}
	return i + 1
}

// locate returns the path of a node, and the index of the byte at which faults of the node are
// reported: its first byte, or that of its key if it is a list, a mapping or missing. A key has the
// path of its mapping.
func (d *Document) locate(i int) (path string, at int) {
	for above := 0; above != i; {
		child, number := above+1, 0
		for ; d.after(child) <= i; number++ {
			child = d.after(child)
		}
		at = int(d.nodes[child].start)
		switch isKey := number%2 == 0; {
		case d.nodes[above].kind == list:
			path += fmt.Sprintf("[%d]", number)
		case isKey:
			return path, at
		default:
			path = join(path, d.textOf(child-1))
			if !d.nodes[child].isText() {
				at = int(d.nodes[child-1].start)
			}
		}
		above = child
	}
	return path, at
}
