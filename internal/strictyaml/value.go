package strictyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// A Value is a value or a key, in a file or on the command line. It may also be a value that the file
// lacks.
type Value struct {
	doc   *Document
	node  int    // the node; of a value that the file lacks, the last mapping above it; -1 on the command line
	label string // on the command line, the flag; of a value that the file lacks, its path below the node
	value string // the text on the command line
}

// Flag returns a value on the command line, after a flag such as --listen.
func (d *Document) Flag(flag, value string) Value { return Value{d, -1, flag, value} }

// Fault records that something is wrong with the value.
func (v Value) Fault(format string, args ...any) { v.record(&v.doc.faults, format, args...) }

// Warn records that the value is valid, but probably a mistake.
func (v Value) Warn(format string, args ...any) { v.record(&v.doc.warnings, format, args...) }

func (v Value) record(to *[]nodeFault, format string, args ...any) {
	if len(*to) == maxFaults {
		return
	}
	f := Fault{File: v.doc.file, Path: v.label, Problem: fmt.Sprintf(format, args...)}
	if v.node >= 0 {
		path, at := v.doc.locate(v.node)
		f.Line, f.Column = at.line, at.column
		if path != "" && f.Path != "" && f.Path[0] != '[' {
			path += "."
		}
		f.Path = path + f.Path
	}
	*to = append(*to, nodeFault{f, v.node})
}

// Place returns where a value of the file begins, as file:line:column.
func (v Value) Place() string {
	n := v.doc.nodes[v.node]
	return fmt.Sprintf("%s:%d:%d", v.doc.file, n.line, n.column)
}

// Faulty reports whether something is wrong with the value or its content.
func (v Value) Faulty() bool {
	return slices.ContainsFunc(v.doc.faults, func(f nodeFault) bool { return v.node <= f.node && f.node < v.doc.after(v.node) })
}

func (v Value) kind() kind {
	switch {
	case v.node < 0:
		return text
	case v.label != "":
		return absent
	}
	return v.doc.nodes[v.node].kind
}

// Missing reports whether there is no value.
func (v Value) Missing() bool { return v.kind() == absent }

// Null reports whether there is no value, or an explicit null.
func (v Value) Null() bool { return v.kind() <= null }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.kind() == list }

// Scalar returns a text. Numbers and words such as true are texts too.
func (v Value) Scalar() (string, bool) {
	if v.node < 0 {
		return v.value, true
	}
	if v.kind() != text {
		return "", false
	}
	return v.doc.nodes[v.node].text, true
}

// Text returns a text of one line, or records a fault. want says in the fault what the text must be.
// The text must not be empty, nor have control characters.
func (v Value) Text(want string) (string, bool) {
	text, ok := v.Scalar()
	switch {
	case !ok:
		v.Fault("%s: it must be %s", v.what(), want)
	case text == "":
		v.Fault("it is empty: it must be %s", want)
	case strings.ContainsRune(text, '\n'):
		v.Fault("text of several lines: it must be %s", want)
	case strings.ContainsFunc(text, unicode.IsControl):
		v.Fault("it has control characters: it must be %s", want)
	default:
		return text, true
	}
	return "", false
}

// what names the kind of the value, for faults that do not show it.
func (v Value) what() string {
	return [...]string{"it has no value", "it has no value", "a single value", "a list", "a mapping"}[v.kind()]
}

// A Field is a key that a mapping may have, and the reader of its value.
type Field struct {
	name string
	read func(Value)
}

// NewField returns a field.
func NewField(name string, read func(Value)) Field { return Field{name, read} }

// Fields reads a mapping, in the order of fields. Keys that are none of the fields are faults.
func (v Value) Fields(fields ...Field) {
	values := make([]Value, len(fields))
	v.Entries(func(name string, key, value Value) {
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

// unknown returns the text of the fault for a name that is none of the fields. It says which field was
// probably meant.
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

// missedSpace matches the text of a field whose colon has no space behind it, which YAML takes for a single value.
var missedSpace = regexp.MustCompile(`^[a-z_]+:\S`)

// Entries calls visit for each key of a mapping, in the order of the file. A missing value counts as an
// empty mapping.
func (v Value) Entries(visit func(name string, key, value Value)) {
	if !v.Null() && v.kind() != mapping {
		hint := ""
		if text, ok := v.Scalar(); ok && missedSpace.MatchString(text) {
			hint = ": a space must follow the colon"
		}
		v.Fault("%s: it must be a mapping%s", v.what(), hint)
		return
	}
	seen := map[string]bool{}
	for key, value := range v.pairs {
		name, ok := key.Text("a name")
		switch {
		case !ok:
		case seen[name]:
			key.Fault("duplicate key %s: it must occur once", message.Quote(name))
		default:
			seen[name] = true
			visit(name, key, value)
		}
	}
}

// pairs yields the keys and values of a mapping, and nothing for other values.
func (v Value) pairs(yield func(key, value Value) bool) {
	if v.kind() != mapping {
		return
	}
	for key, end := v.node+1, v.doc.after(v.node); key < end; key = v.doc.after(key + 1) {
		if !yield(Value{doc: v.doc, node: key}, Value{doc: v.doc, node: key + 1}) {
			return
		}
	}
}

// Items calls visit for each item of a list.
func (v Value) Items(visit func(Value)) {
	if v.kind() != list {
		v.Fault("%s: it must be a list", v.what())
		return
	}
	for item, end := v.node+1, v.doc.after(v.node); item < end; item = v.doc.after(item) {
		visit(Value{doc: v.doc, node: item})
	}
}

// Only returns the entry of a mapping. ok is false unless there is exactly one.
func (v Value) Only() (name string, value Value, ok bool) {
	for key, value := range v.pairs {
		name, _ := key.Scalar()
		return name, value, v.doc.after(value.node) == v.doc.after(v.node)
	}
	return "", Value{}, false
}

// Has reports whether a mapping has a key.
func (v Value) Has(name string) bool { return v.At(name).label == "" }

// At returns the value that names lead to, from mapping to mapping. If the file lacks that value, its
// faults are reported at the last mapping that the file has.
func (v Value) At(names ...string) Value {
	for _, name := range names {
		below := Value{v.doc, v.node, join(v.label, name), ""}
		for key, value := range v.pairs {
			if text, ok := key.Scalar(); ok && text == name {
				below = value
			}
		}
		v = below
	}
	return v
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join returns the path of a key, given the path of its mapping.
func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "[" + message.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}
