package dialect

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Guard reads a stream for as long as its output may grow. It hands on whole events alone, and asks before each of
// them. [Meter.Guard] makes one.
type Guard struct {
	meter  *Meter
	stream io.ReadCloser
	pass   func(most int) bool
	last   func() []byte
	err    error // the error with which the stream has ended

	// buf holds bytes of the stream: those from index from to ready may be read, those behind belong to an event that
	// has not ended yet.
	buf   []byte
	from  int
	ready int

	cut         bool // an event was denied
	partial     bool // a part of an event was handed on, because it is so long
	between     bool // an event has just ended
	dropped     bool // the event before was hidden
	usageBeside bool // usage has come beside a piece of an answer: nothing is hidden any more
}

// maxGuarded is how many bytes of one event are kept back. Of a longer event, what has come is handed on.
const maxGuarded = 4 << 20

// errCut is the error of a stream that was cut off where no event can be put in: it is compressed, or a part of an event
// was handed on.
var errCut = errors.New("ratelimit: the stream was cut off: its output may not grow any further")

// Guard returns a reader of a stream; the meter reads everything that is read through it. Before an event is handed
// on, pass is asked with the most tokens that all answers can have had: see [Meter.MostOutput]. If it denies, the
// stream is closed, and ends with the events that last returns in place of the one that was denied: see
// [Meter.Refusal]. With hideUsage, a chunk with nothing but usage is left out, as by [Meter.Hide].
func (m *Meter) Guard(stream io.ReadCloser, hideUsage bool, pass func(most int) bool, last func() []byte) *Guard {
	m.stream.json.hidesUsage = hideUsage
	return &Guard{meter: m, stream: stream, pass: pass, last: last}
}

// Cut reports whether the stream was cut off.
func (g *Guard) Cut() bool { return g.cut }

// Read reads the bytes of the stream that may be handed on.
func (g *Guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for empty := 0; g.from == g.ready; {
		if g.err != nil {
			return 0, g.err
		}
		if g.fill() > 0 {
			empty = 0
			continue
		}
		if empty++; empty == maxEmptyReads {
			return 0, io.ErrNoProgress
		}
	}
	n := copy(p, g.buf[g.from:g.ready])
	g.from += n
	return n, nil
}

// fill reads a piece of the stream, and returns its length. It is called when nothing is ready.
func (g *Guard) fill() int {
	kept := len(g.buf) - g.ready
	if g.ready > 0 { // a long event is not copied again for each of its pieces
		copy(g.buf, g.buf[g.ready:])
	}
	g.buf = slices.Grow(g.buf[:kept], hideRead)
	g.from, g.ready = 0, 0
	n, err := g.stream.Read(g.buf[kept : kept+hideRead])
	g.buf, g.err = g.buf[:kept+n], err
	g.sort(kept)
	if g.cut || err == nil {
		return n
	}
	switch v := &g.meter.stream.json; { // an event may lack its end
	case v.hidesUsage && !g.usageBeside && v.usageOnly():
	case g.ready < len(g.buf) && !g.pass(g.meter.MostOutput()):
		g.deny(g.ready)
	default:
		g.ready = len(g.buf)
	}
	return n
}

// sort passes the bytes from an index on to the meter, and makes those of whole events ready. All bytes before the
// index belong to an event that has not ended.
func (g *Guard) sort(from int) {
	end := from // where the kept bytes end
	for from < len(g.buf) {
		n, ended := g.next(g.buf[from:], end > g.ready)
		end += copy(g.buf[end:], g.buf[from:from+n])
		from += n
		hidden := ended && g.endEvent(end-g.ready)
		switch {
		case hidden:
			end = g.ready
		case !ended && end-g.ready <= maxGuarded:
		case g.pass(g.meter.MostOutput()):
			g.partial = !ended
			g.ready = end
		default:
			g.deny(from)
			return
		}
	}
	g.buf = g.buf[:end]
}

// next lets the meter read the first bytes of p, up to the end of an event at most. begun is whether an event has come in
// part. It returns how many bytes the meter has read, and whether what has come can be handed on.
func (g *Guard) next(p []byte, begun bool) (n int, ended bool) {
	if m := g.meter; m.format == formatEvents && g.between && m.stream.skipLF(p) > 0 {
		return 1, true
	}
	g.between = false
	return g.meter.next(p, begun)
}

// endEvent ends an event, whose length is given, and reports whether it is hidden. What cannot be read counts in full.
func (g *Guard) endEvent(length int) (hidden bool) {
	v := &g.meter.stream.json
	if g.meter.format != formatEvents {
		return false
	}
	if g.between { // the LF of the CR that has ended the event before
		return g.dropped
	}
	if v.state == atBroken && !v.ended {
		v.most += length
	}
	g.usageBeside = g.usageBeside || v.usageBeside()
	g.dropped = v.hidesUsage && !g.usageBeside && v.usageOnly()
	g.between = true
	g.meter.stream.end()
	return g.dropped
}

// deny ends the stream before the event that was just read. The meter reads what else has come: it was generated, too.
func (g *Guard) deny(from int) {
	g.cut = true
	rest := bytes.Clone(g.buf[from:])
	g.buf, g.err = g.buf[:g.ready], errCut
	if !g.partial && g.meter.gunzip == nil && g.meter.format != formatOpaque {
		g.buf, g.err = append(g.buf, g.last()...), io.EOF
	}
	g.ready = len(g.buf)
	g.meter.Write(rest)
	g.stream.Close()
}

// next reads up to the end of an event, a message or a value, of which a part has come if begun is set, or else all of p.
// It returns how many bytes it has read, and whether that is the end. After an event, the caller calls end of the
// stream.
func (m *Meter) next(p []byte, begun bool) (n int, ended bool) {
	if m.gunzip != nil || m.format == formatOpaque {
		m.Write(p)
		return len(p), true
	}
	if n := m.sniff(p); n > 0 {
		return n, true
	}
	switch m.format {
	case formatEvents:
		return m.stream.next(p)
	case formatFrames:
		return m.frames.next(p)
	}
	return m.stream.json.next(p, begun)
}

// next reads up to the end of a value, or else all of p. It returns how many bytes it has read, and whether they end a
// value or come between two of them. A comma begins the value that follows it.
func (v *values) next(p []byte, begun bool) (n int, ended bool) {
	for !begun && n < len(p) && bytes.IndexByte([]byte(" \t\r\n[]"), p[n]) >= 0 {
		n++
	}
	if n > 0 {
		v.read(p[:n])
		return n, true
	}
	for before := v.shape.values; n < len(p); {
		to := len(p)
		if i := bytes.IndexByte(p[n:], '}'); i >= 0 {
			to = n + i + 1
		}
		v.read(p[n:to])
		n = to
		if v.state == atBroken { // what cannot be read counts in full
			v.most += n
			return n, true
		}
		if v.shape.values > before {
			return n, true
		}
	}
	return n, false
}
