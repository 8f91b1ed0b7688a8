// Package strictyaml reads configuration files and state files in YAML. A library reads the text; this package reads
// its values, and holds them to what a program expects: a fault says where it is, what is wrong and what is allowed.
// Tags and duplicate keys are faults, since one text could mean two things.
package strictyaml

import (
	"fmt"
	"strings"
)

// A Document is the content of a file, and the faults that were found in it.
type Document struct {
	file     string
	text     string
	maxParts int    // how many parts the document may have
	parts    int    // keys, values, aliases and merges so far
	nodes    []node // in the order of the file: a collection comes before its content
	faults   []nodeFault
	warnings []nodeFault
}

// A node is a text, a list, a mapping, or a missing value. A list is followed by its items, and a
// mapping by its keys, each followed by its value.
type node struct {
	kind         kind
	text         string
	line, column int // where the node begins, from 1
	end          int // the index of the node after this one and its content
}

type kind uint8

const (
	absent kind = iota // the missing value of a key or a dash
	null
	text
	list
	mapping
)

// Parse reads the text of a file, of maxBytes at most. What it stands for, with all aliases, may have maxParts keys and
// values. name is the name of the file in faults. If the text has faults, the document has no content.
func Parse(name, text string, maxBytes, maxParts int) *Document {
	d := &Document{file: name, text: strings.TrimPrefix(text, "\ufeff"), maxParts: maxParts}
	d.checkText(maxBytes)
	if len(d.faults) == 0 {
		d.parse()
	}
	if len(d.faults) > 0 {
		d.nodes = []node{{line: 1, column: 1}}
	}
	return d
}

// Root returns the value that is the whole file.
func (d *Document) Root() Value { return Value{doc: d} }

// Blank reports whether the file has neither keys nor items.
func (d *Document) Blank() bool { return len(d.nodes) == 1 }

// after returns the index of the first node after node i and its content.
func (d *Document) after(i int) int { return max(d.nodes[i].end, i+1) }

// locate returns the path of a node, and the node at whose place its faults are reported: it itself, or its key if it is
// a list, a mapping or missing. A key has the path of its mapping.
func (d *Document) locate(i int) (path string, at *node) {
	at = &d.nodes[0]
	for above := 0; above != i; {
		child, number := above+1, 0
		for ; d.after(child) <= i; number++ {
			child = d.after(child)
		}
		at = &d.nodes[child]
		switch isKey := number%2 == 0; {
		case d.nodes[above].kind == list:
			path += fmt.Sprintf("[%d]", number)
		case isKey:
			return path, at
		default:
			path = join(path, d.nodes[child-1].text)
			if at.kind != text {
				at = &d.nodes[child-1]
			}
		}
		above = child
	}
	return path, at
}
