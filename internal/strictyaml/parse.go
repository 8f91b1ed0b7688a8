package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parse reads the text, and records what is wrong with it.
func (d *Document) parse() {
	decoder := yaml.NewDecoder(strings.NewReader(d.text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		d.nodes = []node{{line: 1, column: 1}}
		return
	case err != nil:
		d.broken(err)
		return
	}
	if err := decoder.Decode(&second); err == nil {
		d.refuse(&second, "a second document: there must be one")
	} else if !errors.Is(err, io.EOF) {
		d.broken(err)
	}
	d.add(first.Content[0], nil)
	if d.nodes[0].kind == absent {
		d.nodes[0].line, d.nodes[0].column = 1, 1
	}
	if d.parts > d.maxParts {
		d.refuse(&first, "the file has more than %d keys and values, which is the most that is allowed", d.maxParts)
	}
}

// broken records that the text is no YAML.
func (d *Document) broken(err error) {
	at, said := yaml.Mark{Line: 1, Column: 1}, err.Error()
	if e := (*yaml.LoadError)(nil); errors.As(err, &e) {
		at, said = e.Mark, e.Message
		if e.ContextMsg != "" && e.ContextMark.Line > 0 && e.ContextMark.Index != at.Index {
			said = fmt.Sprintf("%s, %s that begins at %d:%d", said, e.ContextMsg, e.ContextMark.Line, e.ContextMark.Column)
		}
		said += d.hint(at, e)
	}
	d.refuse(&yaml.Node{Line: max(at.Line, 1), Column: max(at.Column, 1)}, "it cannot be read as YAML: %s", said)
}

// hint returns what helps where people often make a mistake.
func (d *Document) hint(at yaml.Mark, e *yaml.LoadError) string {
	lines := strings.SplitN(d.text, "\n", at.Line+1)
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	line := []rune(lines[at.Line-1])
	switch {
	case strings.Contains(e.ContextMsg, "alias") || strings.Contains(e.Message, "anchor"):
		return ": a text that begins with * or & needs quotes"
	case at.Column > 0 && at.Column <= len(line) && line[at.Column-1] == '\t':
		return ": a tab, and lines must be indented with spaces"
	case strings.HasPrefix(e.Message, "found character that cannot start"):
		return ": a text that begins with it needs quotes"
	}
	return ""
}

// proceed counts a part of the document, and reports whether there are not too many.
func (d *Document) proceed() bool {
	d.parts++
	return d.parts <= d.maxParts && len(d.faults) < maxFaults
}

// add adds a node of the library with its content. within are the aliases that have led to it.
func (d *Document) add(n *yaml.Node, within []*yaml.Node) {
	if !d.proceed() {
		return
	}
	i := len(d.nodes)
	switch n.Kind {
	case yaml.AliasNode:
		if slices.Contains(within, n) {
			d.refuse(n, "an alias of what it is in: it must be written out")
			return
		}
		d.add(n.Alias, append(within, n))
		return
	case yaml.ScalarNode:
		d.nodes = append(d.nodes, node{kind: kindOf(n), text: n.Value, line: n.Line, column: n.Column})
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			d.nodes[i].text = strings.TrimSuffix(n.Value, "\n")
		}
	case yaml.SequenceNode:
		d.nodes = append(d.nodes, node{kind: list, line: n.Line, column: n.Column})
		for _, item := range n.Content {
			d.add(item, within)
		}
	case yaml.MappingNode:
		d.nodes = append(d.nodes, node{kind: mapping, line: n.Line, column: n.Column})
		d.addPairs(n, within, nil)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.refuse(n, "a tag: it must be left out; a text with ! needs quotes")
	}
	d.nodes[i].end = len(d.nodes)
}

// kindOf returns the kind of a text.
func kindOf(n *yaml.Node) kind {
	switch {
	case n.Tag != "!!null":
		return text
	case n.Value == "":
		return absent
	}
	return null
}

// addPairs adds the keys and values of a mapping, and of those that it merges with the key <<, unless their names are
// taken. It adds the names to those that are taken, which are nil for a mapping that no other merges.
func (d *Document) addPairs(n *yaml.Node, within []*yaml.Node, taken map[string]bool) {
	var merged []*yaml.Node
	var names []string
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			d.refuse(key, "a list or a mapping for a key: it must be a name")
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case taken[key.Value]:
			d.proceed() // it takes time, too
		default:
			names = append(names, key.Value)
			d.add(key, within)
			d.add(value, within)
		}
	}
	if merged != nil && taken == nil {
		taken = map[string]bool{}
	}
	if taken != nil {
		for _, name := range names {
			taken[name] = true
		}
	}
	for _, m := range merged {
		d.merge(m, within, taken)
	}
}

// merge adds the keys and values of a mapping that another merges, or of several.
func (d *Document) merge(n *yaml.Node, within []*yaml.Node, taken map[string]bool) {
	switch {
	case !d.proceed():
	case n.Kind == yaml.AliasNode && !slices.Contains(within, n):
		d.merge(n.Alias, append(within, n), taken)
	case n.Kind == yaml.MappingNode:
		d.addPairs(n, within, taken)
	case n.Kind == yaml.SequenceNode:
		for _, m := range n.Content {
			d.merge(m, within, taken)
		}
	default:
		d.refuse(n, "<<: it must have the alias of a mapping, or a list of such")
	}
}
