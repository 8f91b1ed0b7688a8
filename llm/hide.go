package llm

import (
	"io"
	"slices"
)

const (
	// maxHeld is how much of an event is held back. A longer one is no chunk of
	// usage.
	maxHeld = 8 << 10

	// hideRead is how much is read at a time.
	hideRead = 4 << 10

	// maxEmptyReads is how often a stream may read nothing without an error.
	maxEmptyReads = 100
)

// shape is what tells whether an event is a chunk that has nothing but usage.
type shape struct {
	values  int  // how many are complete
	array   bool // they are in an array
	choices form
	usage   form
	other   bool // they have a member that not every chunk has
}

// member notes a member of the whole value: whether it is one that every chunk of a stream
// may have, or a chunk that has nothing but usage.
func (s *shape) member(n node, name []byte) {
	switch {
	case n == nodeChoices || n == nodeUsage:
		return
	case n == nodeNone:
		switch string(name) {
		case "id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "obfuscation":
			return
		}
	}
	s.other = true
}

// form is what a member of an event is.
type form uint8

const (
	formAbsent form = iota
	formRight       // an empty array of choices, an object of usage
	formWrong
)

// object notes an object with so many values open around it.
func (s *shape) object(n node, open int) {
	switch {
	case n == nodeChoices: // or an element of them
		s.choices = formWrong
	case n == nodeUsage && open == 1 && s.usage == formAbsent:
		s.usage = formRight
	case n == nodeFault: // which the caller has to see
		s.usage = formWrong
	}
}

// list notes an array.
func (s *shape) list(n node, open int) {
	switch {
	case n == nodeChoices && open == 1 && s.choices == formAbsent:
		s.choices = formRight
	case n == nodeChoices:
		s.choices = formWrong
	case n == nodeUsage && open == 1:
		s.usage = formWrong
	}
}

// scalar notes any other value.
func (s *shape) scalar(n node, open int) {
	switch {
	case n == nodeChoices:
		s.choices = formWrong
	case n == nodeUsage && open == 1:
		s.usage = formWrong
	}
}

// usageOnly reports whether what was read of an event is a chunk that has nothing
// but usage.
func (v *values) usageOnly() bool {
	return v.state == atTop && v.shape == shape{values: 1, choices: formRight, usage: formRight}
}

// usageBeside reports whether what was read of an event is a chunk that has usage beside
// an answer.
func (v *values) usageBeside() bool {
	return v.state == atTop && v.shape == shape{values: 1, choices: formWrong, usage: formRight, other: v.shape.other}
}

// stays reports whether the event that is being read cannot become such a chunk.
func (v *values) stays() bool {
	s := v.shape
	return v.state == atBroken || s.array || s.other || s.choices == formWrong || s.usage == formWrong ||
		s.values > 0 && !v.usageOnly()
}

// hider is a stream without chunks that have nothing but usage. A server that tells usage
// beside its answers does so whether or not it was asked: of its stream nothing is hidden.
type hider struct {
	meter  *Meter
	stream io.Reader
	err    error // of the stream

	// What was read: ready to be handed on, and then held back.
	buf   []byte
	from  int // of what is ready
	ready int // the end of it

	told    bool    // usage has come beside an answer
	passing bool    // the event that is being read stays
	between bool    // an event has just ended
	last    verdict // of the event before
}

// Read reads what is not hidden.
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

// fill reads a piece of the stream when nothing is ready, and returns its length.
func (h *hider) fill() int {
	held := copy(h.buf, h.buf[h.ready:])
	h.buf = slices.Grow(h.buf[:held], hideRead)
	h.from, h.ready = 0, 0
	n, err := h.stream.Read(h.buf[held : held+hideRead])
	h.buf, h.err = h.buf[:held+n], err
	h.sort(held)
	if err == nil {
		return n
	}
	if h.told || !h.meter.stream.json.usageOnly() {
		h.ready = len(h.buf)
	}
	return n
}

// sort has the meter read what has come, from there on, and keeps what is not
// hidden. All before it is held back.
func (h *hider) sort(from int) {
	end := from // of what is kept
	for from < len(h.buf) {
		n, v := h.judge(h.buf[from:], end-h.ready)
		end += copy(h.buf[end:], h.buf[from:from+n])
		from += n
		switch v {
		case passes:
			h.ready = end
		case hides:
			end = h.ready
		}
	}
	h.buf = h.buf[:end]
}

// verdict is what becomes of what is held back.
type verdict uint8

const (
	holds verdict = iota
	passes
	hides
)

// judge has the meter read the next of p, and returns how much that is, and what
// becomes of it and of what was held back before it.
func (h *hider) judge(p []byte, held int) (int, verdict) {
	m, e := h.meter, &h.meter.stream
	if n := m.sniff(p); n > 0 {
		return n, passes
	}
	if m.format == formatValues {
		e.json.read(p)
		return len(p), passes
	}
	if h.between && e.rest(p) > 0 {
		return 1, h.last
	}
	n, ended := e.next(p)
	h.told = h.told || ended && e.json.usageBeside()
	v := holds
	switch {
	case h.told || h.passing || e.json.stays() || held+n > maxHeld:
		v = passes
	case ended && e.json.usageOnly():
		v = hides
	case ended:
		v = passes
	}
	h.passing = v == passes && !ended
	h.between, h.last = ended, v
	if ended {
		e.end()
	}
	return n, v
}
