package dialect

import (
	"io"
	"slices"
)

const (
	// maxWithheld is how many bytes of an event are withheld. A chunk of usage is never longer.
	maxWithheld = 8 << 10

	// hideRead is how many bytes are read at a time.
	hideRead = 4 << 10

	// maxEmptyReads is how many reads in a row may return neither bytes nor an error.
	maxEmptyReads = 100
)

// shape records what is needed to decide whether an event is a chunk with nothing but usage.
type shape struct {
	values  int  // how many values of the event are complete
	array   bool // the values are in an array
	choices form
	usage   form
	other   bool // a value has a member that not every chunk has
}

// recordMember records a member of the chunk: whether chunks with nothing but usage may have it.
func (s *shape) recordMember(n *node, name []byte) {
	switch {
	case n == choicesNode || n == commonUsage || n == tierNode:
		return
	case n == nil:
		switch string(name) {
		case "id", "object", "created", "model", "system_fingerprint", "provider", "obfuscation":
			return
		}
	}
	s.other = true
}

// form says whether a member of an event looks as it does in a chunk with nothing but usage.
type form uint8

const (
	formAbsent form = iota
	formRight       // choices are an empty array, usage is an object
	formWrong
)

// recordValue records the form of a value at a depth: first is its first byte, { or [ or any other.
func (s *shape) recordValue(n *node, depth int, first byte) {
	switch {
	case n == choicesNode && first == '[' && depth == 1 && s.choices == formAbsent:
		s.choices = formRight
	case n == choicesNode: // or an element of them
		s.choices = formWrong
	case n == commonUsage && depth == 1 && first == '{':
		s.usage = max(s.usage, formRight)
	case n == commonUsage && depth == 1:
		s.usage = formWrong
	case n.is(roleFault) && first == '{': // the client has to see errors
		s.usage = formWrong
	}
}

// usageOnly reports whether the event is a chunk with nothing but usage.
func (v *values) usageOnly() bool {
	return v.state == atTop && v.shape == shape{values: 1, choices: formRight, usage: formRight}
}

// usageBeside reports whether the event is a chunk with usage beside a piece of an answer.
func (v *values) usageBeside() bool {
	return v.state == atTop && v.shape == shape{values: 1, choices: formWrong, usage: formRight, other: v.shape.other}
}

// cannotHide reports whether the event, as far as it has come, can no longer become a chunk with
// nothing but usage.
func (v *values) cannotHide() bool {
	s := v.shape
	return v.state == atBroken || s.array || s.other || s.choices == formWrong || s.usage == formWrong ||
		s.values > 0 && !v.usageOnly()
}

// hider reads a stream without the chunks that have nothing but usage. A server that reports usage
// beside its answers does so whether or not it was asked for it: of its stream, nothing is hidden.
type hider struct {
	meter  *Meter
	stream io.Reader
	err    error // the error with which the stream has ended

	// buf holds bytes of the stream: those from index from to ready may be read, those behind are
	// withheld.
	buf   []byte
	from  int
	ready int

	usageBeside bool // usage has come beside a piece of an answer: nothing is hidden any more
	forwarding  bool // the event that is being read is not withheld
	between     bool // an event has just ended
	last        fate // the fate of the event before
}

// Read reads the bytes of the stream that are not hidden.
func (h *hider) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for empty := 0; h.from == h.ready; {
		if h.err != nil {
			return 0, h.err
		}
		if h.fill() > 0 {
			empty = 0
			continue
		}
		if empty++; empty == maxEmptyReads {
			return 0, io.ErrNoProgress
		}
	}
	n := copy(p, h.buf[h.from:h.ready])
	h.from += n
	return n, nil
}

// fill reads a piece of the stream, and returns its length. It is called when nothing is ready.
func (h *hider) fill() int {
	withheld := copy(h.buf, h.buf[h.ready:])
	h.buf = slices.Grow(h.buf[:withheld], hideRead)
	h.from, h.ready = 0, 0
	n, err := h.stream.Read(h.buf[withheld : withheld+hideRead])
	h.buf, h.err = h.buf[:withheld+n], err
	h.sort(withheld)
	if err == nil {
		return n
	}
	if h.usageBeside || !h.meter.stream.json.usageOnly() {
		h.ready = len(h.buf)
	}
	return n
}

// sort passes the bytes from an index on to the meter, and removes the hidden ones. All bytes
// before the index are withheld.
func (h *hider) sort(from int) {
	end := from // where the kept bytes end
	for from < len(h.buf) {
		n, v := h.judge(h.buf[from:], end-h.ready)
		end += copy(h.buf[end:], h.buf[from:from+n])
		from += n
		switch v {
		case forward:
			h.ready = end
		case drop:
			end = h.ready
		}
	}
	h.buf = h.buf[:end]
}

// fate is what becomes of withheld bytes.
type fate uint8

const (
	withhold fate = iota
	forward
	drop
)

// judge lets the meter read the first bytes of p, and returns how many these are, and what becomes
// of them and of the withheld bytes before them.
func (h *hider) judge(p []byte, withheld int) (int, fate) {
	m, e := h.meter, &h.meter.stream
	if n := m.sniff(p); n > 0 {
		return n, forward
	}
	if m.format == formatValues {
		e.json.read(p)
		return len(p), forward
	}
	if h.between && e.skipLF(p) > 0 {
		return 1, h.last
	}
	n, ended := e.next(p)
	h.usageBeside = h.usageBeside || ended && e.json.usageBeside()
	v := withhold
	switch {
	case h.usageBeside || h.forwarding || e.json.cannotHide() || withheld+n > maxWithheld:
		v = forward
	case ended && e.json.usageOnly():
		v = drop
	case ended:
		v = forward
	}
	h.forwarding = v == forward && !ended
	h.between, h.last = ended, v
	if ended {
		e.end()
	}
	return n, v
}
