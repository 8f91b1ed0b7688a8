package dialect

import "bytes"

// maxTemplate is the length of the longest event that becomes a template.
const maxTemplate = 768

// template is an event without its text: nearly all events of a stream differ in nothing else. An
// event with plain text between head and tail adds that text to the tally, and nothing more.
type template struct {
	head []byte // up to the first character of the text
	tail []byte // from the quote behind the text to the end of the event; empty while there is no template

	tier tier // that the event names

	last     []byte // an event to compare with the next one, or empty
	skip     int    // how many events to read before two are compared
	nextSkip int    // how many to read after that
}

// matchTemplate reads an event that fits the template, if p begins with one, and returns its
// length, or 0. parse would read the event just the same: the template only saves time.
func (e *events) matchTemplate(p []byte) int {
	t := e.template
	if t == nil || len(t.tail) == 0 || !bytes.HasPrefix(p, t.head) {
		return 0
	}
	end := stringEnd(p, len(t.head))
	text := p[len(t.head):end]
	if !bytes.HasPrefix(p[end:], t.tail) || lineEnd(text) < len(text) {
		return 0
	}
	e.json.pieceCounted = false // there is no other text, whatever its node
	e.json.write(chars(text), len(text))
	e.json.tierNow = t.tier
	e.json.commit()
	t.skip, t.nextSkip = 1, 1
	return end + len(t.tail)
}

// learn makes a template from two events that do not fit the present one, if they are alike. That
// takes as long as reading two or three events, so it is tried again only after 1, 5, 21, 85 more
// events and so on: soon where events repeat, and seldom where they never do.
func (e *events) learn(event []byte) {
	if e.template == nil {
		e.template = new(template)
	}
	t := e.template
	switch {
	case t.skip > 0:
		t.skip--
	case len(event) > maxTemplate:
	case len(t.last) == 0:
		t.last = append(t.last, event...)
	default:
		t.compare(event, &e.json)
		t.last = t.last[:0]
		t.nextSkip = 4*t.nextSkip + 1
		t.skip = t.nextSkip
	}
}

// compare makes a template from an event if it is like the last one. reader is the meter's reader
// of values, which has the same settings as the copy that tries the template.
func (t *template) compare(event []byte, reader *values) {
	e := events{json: values{top: reader.top, hidesUsage: reader.hidesUsage}}
	head := e.toText(event[:commonPrefix(event, t.last)])
	if head == 0 {
		return
	}
	tail := event[stringEnd(event, head):]
	if !bytes.HasSuffix(t.last[head:], tail) {
		return
	}
	tier, ok := e.isTemplate(tail)
	if !ok {
		return
	}
	t.head = append(t.head[:0], event[:head]...)
	t.tail = append(t.tail[:0], tail...)
	t.tier = tier
}

// commonPrefix returns the length of the common prefix of a and b.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// toText reads up to the first text of an event, and returns the length of that, or 0 if there is
// no text.
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

// isTemplate reports whether the part of the event that was read, up to a text, and the tail make a
// template: without a text they add nothing to the tally, and with one character just that. So they
// have no other text, no number and no error, and the text counts. It returns the service tier that
// they name.
func (e *events) isTemplate(tail []byte) (tier, bool) {
	none, one := *e, *e
	one.parse([]byte("x"))
	ok := none.readsOnly(tail, text{}) && one.readsOnly(tail, text{pieces: 1, chars: 1, bytes: 1})
	return one.json.tier, ok
}

// readsOnly reads the tail, which ends the event, and reports whether the event is not hidden,
// leaves nothing for the next one, and has exactly this text and nothing else.
func (e *events) readsOnly(tail []byte, want text) bool {
	e.parse(tail)
	v := &e.json
	return !(v.hidesUsage && v.usageOnly()) && !e.cr && v.written == want && v.most == max(want.bytes, 1) &&
		v.reported.present == 0 && v.fault.n == 0
}
