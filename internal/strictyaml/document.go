// Package strictyaml reads the part of YAML that settings need: mappings, lists and texts of one
// line. Anchors, aliases, tags, directives and keys that stand twice are faults, since they make
// little text mean much, or one text mean two things. A fault says where it is, what is wrong and
// what is allowed.
//
// Time and memory grow with the size of a file alone.
package strictyaml

import (
	"fmt"
	"strings"
)

// A Form says what a kind of file may hold.
type Form struct {
	MaxBytes int // less than 4 GiB
	MaxParts int // keys, values and signs together; 0: any number

	// Generated is for files that programs write. Brackets are closed on their line. A line has
	// at most 4,096 bytes, without tabs and control characters. Numbers have neither quotes nor
	// underscores. A key may stand on a line of its own, behind a question mark.
	Generated bool
}

// A Document is the tree of a file, and what is wrong with the file.
type Document struct {
	file     string
	form     Form
	text     string
	nodes    []node // in the order of the file: a collection comes before its content
	faults   []nodeFault
	warnings []nodeFault
}

// A node is a text, a list, a mapping, or the lack of a value. The items of a list follow it. The
// keys of a mapping follow it, each with its value behind it.
type node struct {
	kind  kind
	start uint32 // where it begins in the text
	end   uint32 // of a text: where it ends; of a list or mapping: the index of the node behind it
}

type kind uint8

const (
	absent kind = iota // a key or a dash has no value
	null
	plain
	quoted
	multiline // text of several lines, behind | or >
	list
	mapping
)

// Parse reads the text of a file; name is the file's name in faults. If there are faults, the
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

// Root returns the place of the whole file.
func (d *Document) Root() Place { return Place{doc: d} }

// Blank reports whether the file says nothing.
func (d *Document) Blank() bool { return len(d.nodes) == 1 }

// behind returns the index of the first node behind node i and its content.
func (d *Document) behind(i int) int {
	if n := d.nodes[i]; n.kind >= list {
		return int(n.end)
	}
	return i + 1
}

// locate returns the path of a node, and the byte of the text at which a fault of the node is
// reported: where the node begins, or the key of a value that is no text. A key has the path of
// its mapping.
func (d *Document) locate(i int) (path string, at int) {
	for above := 0; above != i; {
		child, number := above+1, 0
		for ; d.behind(child) <= i; number++ {
			child = d.behind(child)
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
