package dialect

import "bytes"

// events reads a stream of server-sent events, in pieces split anywhere, and passes their data on
// as JSON. Lines end in LF, CR LF or CR.
type events struct {
	json values
	line line
	cr   bool // the last byte was CR: an LF that comes next belongs to it

	template *template // nil before the first event has ended
}

// line is how much of a line was read: 1 to 4 are so many letters of the name "data".
type line uint8

const (
	lineStart   line = 0
	lineName    line = 4
	lineData    line = 5
	lineIgnored line = 6 // a line that does not matter
)

// next reads up to the end of an event, or else all of p. It returns how many bytes it has read,
// and whether the event has ended: then the caller calls end.
func (e *events) next(p []byte) (n int, ended bool) {
	n = e.skipLF(p)
	begins := e.line == lineStart && e.json.state == atTop && e.json.shape == shape{} // no data of the event was read yet
	if begins {
		if end := e.matchTemplate(p[n:]); end > 0 {
			return n + end, true
		}
	}
	end, ended := e.parse(p[n:])
	if begins && ended {
		e.learn(p[n : n+end])
	}
	return n + end, ended
}

// parse is next without the template. No LF is left of the line before.
func (e *events) parse(p []byte) (n int, ended bool) {
	for n < len(p) {
		i := n + lineEnd(p[n:])
		e.readLine(p[n:i])
		if i == len(p) {
			return i, false
		}
		e.cr = p[i] == '\r'
		n = i + 1
		n += e.skipLF(p[n:])
		if e.endLine() {
			return n, true
		}
	}
	return n, false
}

// skipLF returns how many bytes of p belong to the line that has ended: an LF behind a CR.
func (e *events) skipLF(p []byte) int {
	if !e.cr || len(p) == 0 {
		return 0
	}
	e.cr = false
	if p[0] == '\n' {
		return 1
	}
	return 0
}

// end ends an event. An incomplete value in it is forgotten.
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

// beginData begins the data of a line. The lines of an event are one text with line ends in
// between. The space before the data is white space to JSON.
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

// lineEnd returns the index of the first LF or CR in p, or the length of p. It searches in parts,
// so that it does not search for a far LF again at each CR.
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
