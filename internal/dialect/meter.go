package dialect

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Meter reads the usage of a call from the body of its response as it passes, whole or streamed, in
// pieces of any size. It needs a few kilobytes, and some tens of kilobytes for a compressed body.
// NewMeter makes one; call Usage when the body ends, for whatever reason. A Meter is for one
// goroutine at a time.
type Meter struct {
	protocol *protocol
	format   format
	stream   events
	header   http.Header // may have usage; nil where it cannot
	frames   *frames     // nil unless the body is an AWS event stream
	gunzip   *gunzip     // nil unless the body is compressed
}

// format is how the JSON values of a body follow one another.
type format uint8

const (
	formatUnknown format = iota // nothing but white space has come so far
	formatValues                // one after another, or in an array
	formatEvents                // server-sent events
	formatFrames                // AWS's event stream
	formatOpaque                // a compression that the meter does not know
)

// NewMeter returns a meter for the body of a response with these headers. It recognises the format
// by the body itself. Of compressed bodies it reads those in gzip.
func NewMeter(api API, h http.Header) *Meter {
	m := new(Meter)
	m.Reset(api, h)
	return m
}

// Reset makes the meter, whatever it has read before, one for the body of a response with these headers, as NewMeter
// does. Nothing may read or write the body of the response before any more.
func (m *Meter) Reset(api API, h http.Header) {
	p := api.protocol()
	*m = Meter{protocol: p}
	m.stream.json.top = p.answers
	if p.usageHeaders != nil {
		m.header = h
	}
	switch strings.ToLower(strings.Join(h["Content-Encoding"], ",")) {
	case "", "identity":
	case "gzip", "x-gzip":
		m.gunzip = new(gunzip)
	default:
		m.format = formatOpaque
	}
	if kind, _, _ := strings.Cut(strings.Join(h["Content-Type"], ","), "/"); strings.EqualFold(kind, "audio") { // speech
		m.format = formatOpaque
	}
}

// Expect says how many answers the request asks for, if more than one. The totals that a stream
// reports beside pieces of answers are exact only once all answers have ended.
func (m *Meter) Expect(answers int) { m.stream.json.answersAsked = answers }

// Write reads a piece of the body. It never fails.
func (m *Meter) Write(p []byte) (int, error) {
	if m.gunzip != nil {
		m.gunzip.write(p, m.read)
	} else {
		m.read(p)
	}
	return len(p), nil
}

// read reads a piece of the decompressed body.
func (m *Meter) read(p []byte) {
	p = p[m.sniff(p):]
	switch m.format {
	case formatValues:
		m.stream.json.read(p)
	case formatFrames:
		m.frames.read(p)
	case formatEvents:
		for len(p) > 0 {
			n, ended := m.stream.next(p)
			if ended {
				m.stream.end()
			}
			p = p[n:]
		}
	}
}

// sniff finds the format by the first byte that shows it, and returns how many bytes are before
// that: white space, or a byte order mark.
func (m *Meter) sniff(p []byte) int {
	if m.format != formatUnknown {
		return 0
	}
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			continue
		case '{', '[':
			m.format = formatValues
		default:
			m.format = formatEvents
		}
		if p := m.protocol; c == 0 && p.frames { // a frame starts with its length, whose first byte is always 0
			m.format, m.frames = formatFrames, newFrames(p.packed, &m.stream.json)
		}
		return i
	}
	return len(p)
}

// Usage returns what the call has used, according to everything that was written. It ignores later
// writes.
func (m *Meter) Usage() llm.Usage {
	if m.gunzip != nil {
		m.gunzip.stop()
	}
	json := &m.stream.json
	if m.format == formatValues && json.shape.values == 1 && !json.shape.array {
		json.interim = false // a whole response is complete, even without a finish reason
	}
	json.readHeaders(m.header, m.protocol.usageHeaders)
	u := json.usage(json.unfinished())
	if s := &json.reported; m.protocol.embeds && u.Input < 0 && s.has(totalTokens) { // some embeddings report nothing else
		u.Input = int(s.n[totalTokens])
	}
	if m.protocol.embeds && u.Input >= 0 {
		u.Output, u.Exact = 0, true
	}
	if m.protocol.apart && m.format == formatEvents && json.answersAsked > 1 {
		u.Exact = false
	}
	if u.Units = json.reported.units(m.protocol.units, u.Exact); m.protocol.begins && !m.Finished() {
		u.Units = llm.UnknownUnits
	}
	u.Drawn = json.reported.drawn()
	return u
}

// Fault returns the type or the code of an error that a stream has reported after its start, such
// as "overloaded_error", or "". Call Usage first.
func (m *Meter) Fault() string { return string(m.stream.json.fault.bytes()) }

// Ended reports whether a stream has come to its end, so that nothing of its answer or its usage can
// follow, although the connection may still be open: [DONE], message_stop, response.completed and the
// like have come, or an error.
func (m *Meter) Ended() bool { return m.stream.json.ended }

// ResponseID returns the id by which the response can be fetched, or continued by a later call, if the API has
// that, or "". Of a long id it returns the first 64 bytes.
func (m *Meter) ResponseID() string { return string(m.stream.json.id.bytes()) }

// Status returns the status of a response of OpenAI's responses, such as "queued" or "completed", when it last came,
// or "".
func (m *Meter) Status() string { return string(m.stream.json.status.bytes()) }

// endStatuses are those of a response that does not change any more. An interaction of Gemini's requires an action of
// the client, which sends the next one.
var endStatuses = []string{"completed", "succeeded", "incomplete", "failed", "cancelled", "requires_action"}

// Finished reports whether the response does not change any more, of a call that may go on in the background. It may be
// a list of files that a store keeps.
func (m *Meter) Finished() bool {
	s := &m.stream.json.reported
	whole := s.has(moreFiles) && s.n[moreFiles] == 0 && s.has(storedBytes) && !s.has(pendingFiles)
	return whole || slices.Contains(endStatuses, m.Status())
}

// Hide returns a reader of a stream without the chunk that has nothing but usage; the meter reads
// everything that is read through it. A chunk that has more, such as llama.cpp's timings, stays,
// and so do all chunks of a server that reports usage beside its answers. A compressed stream stays
// as it is.
func (m *Meter) Hide(stream io.Reader) io.Reader {
	if m.gunzip != nil || m.format == formatOpaque {
		return io.TeeReader(stream, m)
	}
	m.stream.json.hidesUsage = true
	return &hider{meter: m, stream: stream}
}
