package llm

import "bytes"

// events reads a stream of server-sent events, in pieces split anywhere, and has
// their data read as JSON. Lines end in LF, CR LF or CR.
type events struct {
	json values
	line line
	cr   bool // the last byte was CR: if LF comes, it belongs to that

	template *template // nil before the first event has ended
}

// line is how much of a line was read: 1 to 4 is so much of the name, data.
type line uint8

const (
	lineStart   line = 0
	lineName    line = 4
	lineData    line = 5
	lineIgnored line = 6 // what does not matter
)

// next reads up to the end of an event, or else all of p. It returns how much that
// is, and whether the event has ended: then end is to be called.
func (e *events) next(p []byte) (n int, ended bool) {
	n = e.rest(p)
	begins := e.line == lineStart && e.json.state == atTop && e.json.shape == shape{} // no data was read of it
	if begins {
		if end := e.repeat(p[n:]); end > 0 {
			return n + end, true
		}
	}
	end, ended := e.parse(p[n:])
	if begins && ended {
		e.learn(p[n : n+end])
	}
	return n + end, ended
}

// parse is next without a template, where no LF is left of the line before.
func (e *events) parse(p []byte) (n int, ended bool) {
	for n < len(p) {
		i := n + lineEnd(p[n:])
		e.readLine(p[n:i])
		if i == len(p) {
			return i, false
		}
		e.cr = p[i] == '\r'
		n = i + 1
		n += e.rest(p[n:])
		if e.endLine() {
			return n, true
		}
	}
	return n, false
}

// rest returns how much of p belongs to the line that has ended: LF after CR.
func (e *events) rest(p []byte) int {
	if !e.cr || len(p) == 0 {
		return 0
	}
	e.cr = false
	if p[0] == '\n' {
		return 1
	}
	return 0
}

// end ends an event. What was not complete in it is forgotten.
func (e *events) end() { e.json.reset() }

// readLine reads a piece of a line.
func (e *events) readLine(b []byte) {
	if e.line == lineStart && len(b) > 5 && string(b[:5]) == "data:" { // nearly always
		e.beginData()
		b = b[5:]
	}
	for i, c := range b {
		switch {
		case e.line == lineData:
			e.json.read(b[i:])
			return
		case e.line < lineName && c == "data"[e.line]:
			e.line++
		case e.line == lineName && c == ':':
			e.beginData()
		default:
			e.line = lineIgnored
			return
		}
	}
}

// beginData begins the data of a line. The lines of an event are one text, with the
// ends of the lines in it. A space before the data is one more that JSON may have.
func (e *events) beginData() {
	e.json.newline()
	e.line = lineData
}

// endLine ends a line, and reports whether that has ended the event.
func (e *events) endLine() bool {
	blank := e.line == lineStart
	e.line = lineStart
	return blank
}

// lineEnd returns where in p is LF or CR, or the length of p. It looks at a part of
// p at a time, so that it does not look for LF again and again where there is none.
func lineEnd(p []byte) int {
	const part = 512
	for at := 0; at < len(p); at += part {
		b := p[at:min(at+part, len(p))]
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b)
		}
		if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
			i = j
		}
		if i < len(b) {
			return at + i
		}
	}
	return len(p)
}
