package strictyaml

// flow reads a list in brackets or a mapping in braces.
func (p *parser) flow(open byte) {
	if p.lists+p.pairs == maxDepth {
		p.tooDeep()
		return
	}
	start, line := p.pos, p.line
	kind, end, depth, unclosed := list, byte(']'), &p.lists, "sequence end token ']' not found"
	if open == '{' {
		kind, end, depth, unclosed = mapping, '}', &p.pairs, "could not find flow mapping end token '}'"
	}
	if p.form.Generated {
		unclosed += " on its line"
	}
	i := p.add(kind, start, 0)
	*depth++
	for c := byte(','); c != end; {
		p.pos++ // the opening bracket, or a comma
		if c = p.next(); c != end && c != 0 {
			if p.item(c, false); kind == mapping {
				p.entry(c)
			}
			c = p.next()
		}
		switch {
		case c == 0 || p.form.Generated && p.line != line:
			p.broken(start, unclosed)
			return
		case c != end && c != ',':
			p.broken(p.pos, "',' or '"+string(end)+"' must be specified")
			return
		}
	}
	p.pos++
	*depth--
	p.nodes[i].end = uint32(len(p.nodes))
}

// entry reads the value of a key between braces. The parser has read the key, which began with c.
func (p *parser) entry(c byte) {
	colon := p.next() == ':'
	if c == '[' || c == '{' {
		p.broken(p.pos, invalidKey)
		return
	}
	i := len(p.nodes) - 1
	key := p.nodes[i]
	if colon {
		p.colon(i, false)
		apart := p.isBlank(p.pos) || key.kind == quoted || !p.form.Generated
		if c := p.next(); c != 0 && c != ',' && c != '}' && apart {
			p.item(c, true)
			return
		}
	}
	if p.form.Generated {
		p.fail(int(key.start), wantKey+", and a value")
	}
	p.add(absent, int(key.start), 0)
}

// item reads an item of a list, a key or a value between brackets. value is set if it is a value of a
// mapping.
func (p *parser) item(c byte, value bool) {
	if c == '[' || c == '{' {
		p.flow(c)
	} else {
		p.scalar(value)
	}
}
