package strictyaml

import (
	"slices"
	"strings"
)

// maxDepth is how many brackets may be nested, and how many dashes may be on a line.
const maxDepth = 16

// A parser reads a text once, from front to back. Where it cannot go on, it records a fault and moves
// to the end of the text.
type parser struct {
	*Document
	pos          int  // the index of the next byte
	line         int  // the index of the first byte of its line
	fresh        bool // the parser has read only spaces of the line
	header       int  // the index of the line with ---; -1 if there is none
	lists, pairs int  // how many brackets and braces are not closed yet
	dashes       int  // how many lists begin on this line
	colons       int  // how many colons the parser has read
}

func (d *Document) parse() {
	p := &parser{Document: d, fresh: true, header: -1}
	p.next()
	p.value(owner{column: -1, block: p.line != p.header})
	if p.next() != 0 {
		p.misplaced()
	}
	if parts, most := len(p.nodes)+p.colons, d.form.MaxParts; most > 0 && parts > most {
		d.refuse(0, "the file has %d keys, values and signs: at most %d are allowed", parts, most)
	}
}

// fail records a fault, unless an earlier fault may have caused it, and ends the reading.
func (p *parser) fail(at int, format string, args ...any) {
	if len(p.faults) == 0 {
		p.refuse(at, format, args...)
	}
	p.pos = len(p.text)
}

func (p *parser) broken(at int, problem string) { p.fail(at, "it cannot be read as YAML: %s", problem) }

func (p *parser) misplaced() { p.broken(p.pos, "value is not allowed in this context") }

func (p *parser) tooDeep() {
	p.fail(p.pos, "brackets or dashes within %d others: that is the most that is allowed", maxDepth)
}

func (p *parser) column() int { return p.pos - p.line }

func (p *parser) inFlow() bool { return p.lists+p.pairs > 0 }

// next moves to the next text or sign, over spaces, comments and line breaks, and returns its first
// byte, or 0 at the end of the text. It records anchors and tags as faults.
func (p *parser) next() byte {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '\t' && p.fresh && !p.inFlow():
			p.fail(p.pos, "a tab: lines must be indented with spaces")
		case c == ' ' || c == '\t':
			p.pos++
		case isBreak(c):
			p.pos++
			p.line, p.fresh, p.dashes = p.pos, true, 0
		case c == '#':
			p.skip("\r\n")
		case p.pos == p.line && p.isMarker():
			p.pos += 3
		case c == '&':
			p.refuse(p.pos, "an anchor: it must be left out; a text with & needs quotes")
			p.skip(" \t\r\n,]}")
		case c == '!':
			p.refuse(p.pos, "a tag: it must be left out; a text with ! needs quotes")
			p.skip(" \t\r\n,]}")
		case c == 0:
			p.broken(p.pos, "found a byte that is 0")
		default:
			p.fresh = false
			return c
		}
	}
	return 0
}

// skip moves to the next byte that is one of to, or to the end of the text.
func (p *parser) skip(to string) {
	if n := strings.IndexAny(p.text[p.pos:], to); n >= 0 {
		p.pos += n
	} else {
		p.pos = len(p.text)
	}
}

// isMarker reports whether the line begins with --- or with "...". Only --- at the beginning of the
// file is not a fault.
func (p *parser) isMarker() bool {
	switch rest := p.text[p.pos:]; {
	case strings.HasPrefix(rest, "..."):
		p.refuse(p.pos, "the end of a document: it must be left out")
	case !strings.HasPrefix(rest, "---") || !p.isBlank(p.pos+3):
		return false
	case len(p.nodes) > 0 || p.header >= 0:
		p.refuse(p.pos, "a second document: there must be one")
	}
	p.header = p.line
	return true
}

// isBlank reports whether the byte at an index is a space, a tab or a line break, or after the end of
// the text.
func (p *parser) isBlank(at int) bool {
	return at >= len(p.text) || p.text[at] == ' ' || p.text[at] == '\t' || isBreak(p.text[at])
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// spaces moves to the next text or sign of the line, or to the line's end.
func (p *parser) spaces() { p.pos = p.afterSpaces(p.pos) }

func (p *parser) afterSpaces(at int) int {
	return len(p.text) - len(strings.TrimLeft(p.text[at:], " \t"))
}

// isSign reports whether the next byte is a sign such as a dash, followed by a blank.
func (p *parser) isSign(c byte) bool {
	return p.pos < len(p.text) && p.text[p.pos] == c && p.isBlank(p.pos+1)
}

// isLong reports whether a long key comes next: a question mark, with the key after it on its line.
func (p *parser) isLong() bool { return p.isSign('?') && !p.isBlank(p.afterSpaces(p.pos+1)) }

// add adds a node and returns its index.
func (p *parser) add(k kind, start, end int) int {
	p.nodes = append(p.nodes, node{k, uint32(start), uint32(end)})
	return len(p.nodes) - 1
}

// An owner is the key or the dash whose value comes next.
type owner struct {
	at     int  // the index of the owner's first byte
	column int  // a value on a later line must begin to the right of this column
	dashes bool // a list on a later line may also have its dashes in this column
	block  bool // a mapping or a list without brackets may begin on the owner's own line
}

// value reads the value of a key or a dash, or of the whole file.
func (p *parser) value(of owner) {
	line := p.line
	c := p.next()
	start, column, below := p.pos, p.column(), p.line != line
	outside := column < of.column || column == of.column && !(of.dashes && p.isSign('-'))
	block := below || of.block
	switch {
	case c == 0 || below && outside:
		p.add(absent, of.at, of.at)
	case c == '[' || c == '{':
		if p.flow(c); p.next() != 0 && p.isSign(':') {
			p.broken(p.pos, invalidKey)
		}
	case c == '|' || c == '>':
		p.multiline(of.column)
	case block && p.isSign('-'):
		p.list(column)
	case block && p.isLong():
		i := p.add(mapping, start, 0)
		p.mapping(i, column, p.key())
	default:
		i := p.scalar(false)
		p.spaces()
		switch isKey := p.isSign(':'); {
		case isKey && block:
			p.nodes = slices.Insert(p.nodes, i, node{kind: mapping, start: uint32(start)})
			p.mapping(i, column, false)
		case isKey:
			p.broken(start, "mapping value is not allowed in this context")
		case block && p.next() != 0 && p.column() >= column:
			p.fail(start, wantKey)
		}
	}
}

const (
	invalidKey = "found an invalid key for this map"
	wantKey    = "it must be a key, with a colon and a space after it"
)

// mapping reads the mapping that is node i, and whose keys are in a column. The parser has read the
// first key. long is set if that is a long key.
func (p *parser) mapping(i, column int, long bool) {
	for p.pos < len(p.text) {
		key := len(p.nodes) - 1
		p.colon(key, long)
		p.value(owner{at: int(p.nodes[key].start), column: column, dashes: true, block: long})
		if p.next() == 0 || p.column() < column {
			break
		}
		if p.column() > column {
			p.misplaced()
			break
		}
		long = p.key()
	}
	p.nodes[i].end = uint32(len(p.nodes))
}

// colon moves over the colon after a key. It records a fault for the key <<, which YAML replaces by
// the fields of another mapping.
func (p *parser) colon(key int, long bool) {
	if n := p.nodes[key]; n.kind == plain && !long && strings.HasSuffix(strings.TrimRight(p.textOf(key), " :"), "<<") {
		p.refuse(int(n.start), "<<: it must be written out")
	}
	p.pos++
	p.colons++
}

// key reads a key and moves to its colon, which for a long key is below the question mark. It reports
// whether the key is long.
func (p *parser) key() (long bool) {
	start, column := p.pos, p.column()
	if long = p.isLong(); long {
		if !p.form.Generated {
			p.refuse(start, "a question mark: a key must stand on its line, with a colon after it")
		}
		p.pos++
		p.spaces()
	}
	p.scalar(false)
	if p.spaces(); long {
		p.next()
	}
	if !long && !p.isSign(':') {
		p.fail(start, wantKey)
	} else if long && (!p.isSign(':') || p.column() != column) {
		p.fail(start, "a question mark: it must have a key behind it, and a colon below it")
	}
	return long
}

// list reads a list whose dashes are in a column.
func (p *parser) list(column int) {
	if p.dashes++; p.dashes > maxDepth {
		p.tooDeep()
		return
	}
	i := p.add(list, p.pos, 0)
	for p.isSign('-') && p.column() == column {
		p.pos++
		p.value(owner{at: p.pos - 1, column: column, block: true})
		p.next()
	}
	p.nodes[i].end = uint32(len(p.nodes))
}

// multiline moves over a text of several lines, all of which begin to the right of a column.
func (p *parser) multiline(column int) {
	start := p.pos
	for p.skip("\r\n"); p.pos < len(p.text); p.skip("\r\n") {
		text := p.afterSpaces(p.pos + 1)
		if !p.isBlank(text) && text-p.pos-1 <= column {
			break
		}
		p.pos++
	}
	p.add(multiline, start, p.pos)
}
