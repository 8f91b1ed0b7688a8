package strictyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// A Place is a key or a value, in a file or on the command line.
type Place struct {
	doc   *Document
	node  int    // -1: the value is on the command line
	label string // on the command line: the flag; of a value that the file lacks: its path below the node
	value string // the value on the command line
}

// Flag returns the place of a value on the command line, behind a flag such as --listen.
func (d *Document) Flag(flag, value string) Place { return Place{d, -1, flag, value} }

// Fault records that something is wrong here.
func (p Place) Fault(format string, args ...any) { p.record(&p.doc.faults, format, args...) }

// Warn records that something here is valid, but hardly meant.
func (p Place) Warn(format string, args ...any) { p.record(&p.doc.warnings, format, args...) }

func (p Place) record(to *[]nodeFault, format string, args ...any) {
	if len(*to) == maxFaults {
		return
	}
	f := Fault{File: p.doc.file, Path: p.label, Problem: fmt.Sprintf(format, args...)}
	if p.node >= 0 {
		path, at := p.doc.locate(p.node)
		f.Line, f.Column = p.doc.position(at)
		if path != "" && f.Path != "" && f.Path[0] != '[' {
			path += "."
		}
		f.Path = path + f.Path
	}
	*to = append(*to, nodeFault{f, p.node})
}

// Faulty reports whether something is wrong with the value or its content.
func (p Place) Faulty() bool {
	return slices.ContainsFunc(p.doc.faults, func(f nodeFault) bool { return p.node <= f.node && f.node < p.doc.behind(p.node) })
}

func (p Place) kind() kind {
	switch {
	case p.node < 0:
		return plain
	case p.label != "":
		return absent
	}
	return p.doc.nodes[p.node].kind
}

// Missing reports whether there is no value.
func (p Place) Missing() bool { return p.kind() == absent }

// Null reports whether there is no value, or an explicit null.
func (p Place) Null() bool { return p.kind() <= null }

// Scalar returns a text of one line; numbers and words such as true are texts.
func (p Place) Scalar() (string, bool) {
	if p.node < 0 {
		return p.value, true
	}
	if k := p.kind(); k != plain && k != quoted {
		return "", false
	}
	return p.doc.textOf(p.node), true
}

// Text returns a text of one line, or records a fault; want says what the text must be. Unless a
// program wrote it, it must not be empty, nor have control characters.
func (p Place) Text(want string) (string, bool) {
	text, ok := p.Scalar()
	switch {
	case !ok:
		p.Fault("%s: it must be %s", p.what(), want)
	case text == "" && !p.doc.form.Generated:
		p.Fault("it is empty: it must be %s", want)
	case !p.doc.form.Generated && strings.ContainsFunc(text, unicode.IsControl):
		p.Fault("it has control characters: it must be %s", want)
	default:
		return text, true
	}
	return "", false
}

// what names the kind of the value, for faults that do not show it.
func (p Place) what() string {
	return [...]string{"it has no value", "it has no value", "a single value", "a single value", "text of several lines", "a list", "a mapping"}[p.kind()]
}

// A Field is a key that a mapping may have, and the reader of its value.
type Field struct {
	name string
	read func(Place)
}

// NewField returns a field.
func NewField(name string, read func(Place)) Field { return Field{name, read} }

// Fields reads a mapping that has no other keys than fields. It reads in the order of fields.
func (p Place) Fields(fields ...Field) {
	values := make([]Place, len(fields))
	p.Entries(func(name string, key, value Place) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.name == name })
		if i < 0 {
			key.Fault("%s", unknown(name, fields))
			return
		}
		values[i] = value
	})
	for i, f := range fields {
		if values[i].doc != nil {
			f.read(values[i])
		}
	}
}

// unknown says that a name is none of the fields, and which field was probably meant.
func unknown(name string, fields []Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	guess := ""
	if best := message.Nearest(name, names); best != "" {
		guess = fmt.Sprintf(" (did you mean %s?)", best)
	}
	return fmt.Sprintf("unknown field %s%s: it must be one of %s", message.Quote(name), guess, strings.Join(names, ", "))
}

// Entries calls visit for each key of a mapping, in the order of the file. No value is an empty
// mapping.
func (p Place) Entries(visit func(name string, key, value Place)) {
	if !p.Null() && p.kind() != mapping {
		p.Fault("%s: it must be a mapping", p.what())
		return
	}
	seen := map[string]bool{}
	for key, value := range p.pairs {
		name, ok := key.Text("a name")
		switch {
		case !ok:
		case seen[name]:
			key.Fault("%s stands here twice: it must stand here once", message.Quote(name))
		default:
			seen[name] = true
			visit(name, key, value)
		}
	}
}

// pairs goes over the keys and values of a mapping.
func (p Place) pairs(yield func(key, value Place) bool) {
	if p.kind() != mapping {
		return
	}
	for key, end := p.node+1, p.doc.behind(p.node); key < end; key = p.doc.behind(key + 1) {
		if !yield(Place{doc: p.doc, node: key}, Place{doc: p.doc, node: key + 1}) {
			return
		}
	}
}

// Items calls visit for each item of a list.
func (p Place) Items(visit func(Place)) {
	if p.kind() != list {
		p.Fault("%s: it must be a list", p.what())
		return
	}
	for item, end := p.node+1, p.doc.behind(p.node); item < end; item = p.doc.behind(item) {
		visit(Place{doc: p.doc, node: item})
	}
}

// Only returns the entry of a mapping that has exactly one.
func (p Place) Only() (name string, value Place, ok bool) {
	for key, value := range p.pairs {
		name, _ := key.Scalar()
		return name, value, p.doc.behind(value.node) == p.doc.behind(p.node)
	}
	return "", Place{}, false
}

// Has reports whether a mapping has a key.
func (p Place) Has(name string) bool { return p.At(name).label == "" }

// At follows names down the mappings, and returns the last value. If the file lacks the value, its
// faults are reported where the last mapping is that the file has.
func (p Place) At(names ...string) Place {
	for _, name := range names {
		below := Place{p.doc, p.node, join(p.label, name), ""}
		for key, value := range p.pairs {
			if text, ok := key.Scalar(); ok && text == name {
				below = value
			}
		}
		p = below
	}
	return p
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join returns the path of a key of the mapping with a path.
func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "[" + message.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}
