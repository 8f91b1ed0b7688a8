package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A reader goes through a file, and keeps what it finds wrong.
type reader struct {
	file     string
	faults   []Fault
	warnings []Fault
	said     map[string]place // by path
}

// maxFaults is how many faults are told of a file.
const maxFaults = 100

// at returns the place of a path, or else of the nearest above it.
func (r *reader) at(path string) place {
	for above := path; above != ""; {
		if p, ok := r.said[above]; ok {
			if p.line > 0 {
				p.path = path
			}
			return p
		}
		above = above[:max(strings.LastIndexByte(above, '.'), 0)]
	}
	return place{r: r, path: path, line: 1, column: 1}
}

// faulty reports whether something is wrong at a path, or below.
func (r *reader) faulty(path string) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool {
		below, ok := strings.CutPrefix(f.Path, path)
		return ok && (below == "" || below[0] == '.' || below[0] == '[')
	})
}

// A place is where a value stands.
type place struct {
	r            *reader
	path         string
	node         ast.Node
	line, column int // 0: on the command line
}

func (p place) fault(format string, args ...any) {
	if len(p.r.faults) < maxFaults {
		p.r.faults = append(p.r.faults, p.note(format, args...))
	}
}

func (p place) warn(format string, args ...any) {
	if len(p.r.warnings) < maxFaults {
		p.r.warnings = append(p.r.warnings, p.note(format, args...))
	}
}

func (p place) note(format string, args ...any) Fault {
	return Fault{p.r.file, p.line, p.column, p.path, fmt.Sprintf(format, args...)}
}

// child is the place of a value whose key, or whose item in a list, is named so.
func (p place) child(path string, key *token.Token, node ast.Node) place {
	at := key.Position
	if isScalar(node) {
		at = node.GetToken().Position
	}
	c := place{p.r, path, node, at.Line, at.Column}
	p.r.said[path] = c
	return c
}

// A field is one that a mapping may have.
type field struct {
	name string
	read func(place)
}

// fields reads a mapping whose keys are known, in the order of fields.
func (p place) fields(fields ...field) {
	said := map[string]place{}
	p.entries(func(name string, key, value place) {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
		if !known {
			key.fault("%s", unknown(name, fields))
			return
		}
		said[name] = value
	})
	for _, f := range fields {
		if value, ok := said[f.name]; ok {
			f.read(value)
		}
	}
}

// entries calls visit for each key of a mapping, in the order of the file.
func (p place) entries(visit func(name string, key, value place)) {
	var pairs []*ast.MappingValueNode
	switch n := p.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	case *ast.NullNode: // all of its fields are commented out
	default:
		p.fault("%s: it must be a mapping", p.kind())
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		token := pair.Key.GetToken()
		key := place{p.r, p.path, pair.Key, token.Position.Line, token.Position.Column}
		name, ok := key.text("a name")
		switch {
		case !ok:
		case seen[name]:
			key.fault("%s stands here twice: it must stand here once", shown(name))
		default:
			seen[name] = true
			visit(name, key, p.child(join(p.path, name), token, pair.Value))
		}
	}
}

// items calls visit for each item of a list.
func (p place) items(visit func(place)) {
	list, ok := p.node.(*ast.SequenceNode)
	if !ok {
		p.fault("%s: it must be a list", p.kind())
		return
	}
	for i, node := range list.Values {
		visit(p.child(fmt.Sprintf("%s[%d]", p.path, i), list.GetToken(), node))
	}
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join returns the path of what is named so below a path.
func join(path, name string) string {
	switch {
	case !plain.MatchString(name):
		return path + "[" + shown(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// text returns a value that is neither null nor a mapping nor a list, nor empty.
func (p place) text(want string) (string, bool) {
	if !isScalar(p.node) {
		p.fault("%s: it must be %s", p.kind(), want)
		return "", false
	}
	text := p.node.GetToken().Value
	switch {
	case text == "":
		p.fault("it is empty: it must be %s", want)
	case strings.ContainsFunc(text, unicode.IsControl):
		p.fault("it has control characters: it must be %s", want)
	default:
		return text, true
	}
	return "", false
}

func isScalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return true
	}
	return false
}

// kind says what stands there, for errors that do not show it.
func (p place) kind() string {
	switch p.node.(type) {
	case *ast.NullNode:
		return "it has no value"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.LiteralNode:
		return "text of several lines"
	}
	return "a single value"
}

// shown is a text as errors show it.
func shown(text string) string { return fmt.Sprintf("%.60q", text) }
