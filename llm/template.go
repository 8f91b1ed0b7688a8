package llm

import "bytes"

// maxTemplate is how long an event may be that a template is made of.
const maxTemplate = 768

// template is an event without its text: nearly all events of a stream differ in
// nothing else. An event that has just plain text between head and tail tells that
// text, and nothing more.
type template struct {
	head []byte // up to the first character of the text
	tail []byte // from the quote after it to the end of the event; empty if none was learned

	last []byte // an event to compare with another, or nothing
	wait int    // how many events to read before two are compared
	then int    // how many to read after that
}

// repeat reads an event that is like the template, if p begins with one, and
// returns its length, or 0. All else is left to parse: repeat only saves time.
func (e *events) repeat(p []byte) int {
	t := e.template
	if t == nil || len(t.tail) == 0 || !bytes.HasPrefix(p, t.head) {
		return 0
	}
	end := stringEnd(p, len(t.head))
	text := p[len(t.head):end]
	if !bytes.HasPrefix(p[end:], t.tail) || lineEnd(text) < len(text) {
		return 0
	}
	e.json.piece = false // of whatever node: there is no other text
	e.json.write(chars(text))
	e.json.commit()
	t.wait, t.then = 1, 1
	return end + len(t.tail)
}

// learn makes a template of two events that are not like the one that there is, if
// they are alike. That takes as long as to read two or three of them, so it is tried
// again only after 1, 5, 21, 85 others and so on: soon where events repeat, and seldom
// where they never do.
func (e *events) learn(event []byte) {
	if e.template == nil {
		e.template = new(template)
	}
	t := e.template
	switch {
	case t.wait > 0:
		t.wait--
	case len(event) > maxTemplate:
	case len(t.last) == 0:
		t.last = append(t.last, event...)
	default:
		t.compare(event, &e.json)
		t.last = t.last[:0]
		t.then = 4*t.then + 1
		t.wait = t.then
	}
}

// compare makes a template of an event if it is like the last one, for a meter that reads
// as of does.
func (t *template) compare(event []byte, of *values) {
	e := events{json: values{top: of.top, hides: of.hides}}
	head := e.toText(event[:common(event, t.last)])
	if head == 0 {
		return
	}
	tail := event[stringEnd(event, head):]
	if !bytes.HasSuffix(t.last[head:], tail) || !e.isTemplate(tail) {
		return
	}
	t.head = append(t.head[:0], event[:head]...)
	t.tail = append(t.tail[:0], tail...)
}

// common returns how much of a and b is the same.
func common(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// toText reads up to the first text of an event, and returns how much that is, or 0
// where there is none.
func (e *events) toText(event []byte) int {
	n := 0
	for i, c := range event {
		if c != '"' || i == 0 || event[i-1] != ':' && event[i-1] != ' ' {
			continue
		}
		e.parse(event[n : i+1])
		n = i + 1
		if e.json.state == inText {
			return n
		}
	}
	return 0
}

// isTemplate reports whether what was read, up to a text, and the tail make a
// template: with no text they tell nothing, and with a character just that. So there
// is no other text, number or fault, and the text counts.
func (e *events) isTemplate(tail []byte) bool {
	none, one := *e, *e
	one.parse([]byte("x"))
	return none.tells(tail, text{}) && one.tells(tail, text{pieces: 1, chars: 1})
}

// tells reads the tail, which ends the event, and reports whether the event stays in
// the stream, leaves nothing for the next, and has told so much text and nothing else.
func (e *events) tells(tail []byte, want text) bool {
	e.parse(tail)
	v := &e.json
	return !(v.hides && v.usageOnly()) && !e.cr && v.written == want && v.said.set == 0 && v.fault.n == 0
}
