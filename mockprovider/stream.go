package mockprovider

import (
	"io"
	"net/http"
)

// event is a piece of a stream.
type event struct {
	name string // empty: none
	data object

	// The tokens that it brings, for the totals. Those of reasoning are of output.
	output, reasoning int

	exception bool // of AWS's event streams: its name is that of an error
}

// framing is how events are put into a body.
type framing struct {
	contentType   string
	before, after string             // all events
	between, end  string             // two events, and at the end of each
	sse           bool               // an event has a name and data; otherwise it is its data
	frame         func(event) []byte // puts an event into a frame of AWS's event streams; nil: it is none
}

// The framings.
var (
	sse    = framing{contentType: "text/event-stream; charset=utf-8", end: "\n\n", sse: true}
	sseEnd = framing{contentType: "text/event-stream; charset=utf-8", end: "\n\n", after: "data: [DONE]\n\n", sse: true}
	lines  = framing{contentType: "application/x-ndjson", end: "\n"}
	array  = framing{contentType: "application/json; charset=UTF-8", before: "[", between: ",\r\n", after: "]"}
)

// event returns an event in its frame.
func (f framing) event(e event, first bool) []byte {
	if f.frame != nil {
		return f.frame(e)
	}
	var text []byte
	if !first {
		text = append(text, f.between...)
	}
	if f.sse && e.name != "" {
		text = append(append(append(text, "event: "...), e.name...), '\n')
	}
	if f.sse {
		text = append(text, "data: "...)
	}
	return append(append(text, encode(e.data)...), f.end...)
}

// stream sends an answer in events, each as soon as it is there.
func (e *exchange) stream(a *answer) {
	s := &streaming{exchange: e, framing: e.format.framing(a.Call), flusher: http.NewResponseController(e.w)}
	for event := range e.format.events(a) {
		if !e.pause() || e.breaks(s, a) || !s.send(event) {
			return
		}
	}
	if e.breaks(s, a) {
		return
	}
	io.WriteString(e.w, s.framing.after)
}

// breaks lets happen what goes wrong, once it is time. It reports whether the stream
// is over.
func (e *exchange) breaks(s *streaming, a *answer) bool {
	if e.reply.Fault == "" || s.sent < e.reply.After {
		return false
	}
	switch e.reply.Fault {
	case FaultError:
		s.send(e.format.broken(a))
		if !s.framing.sse {
			io.WriteString(e.w, s.framing.after)
		}
	case FaultReset:
		panic(http.ErrAbortHandler)
	case FaultStall:
		s.begin()
		<-e.r.Context().Done()
	case FaultEnd:
		s.begin()
	}
	return true
}

// streaming is a stream of which some was sent.
type streaming struct {
	*exchange
	framing framing
	flusher *http.ResponseController
	sent    int
	begun   bool
}

// begin sends the headers.
func (s *streaming) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.w.Header().Set("Content-Type", s.framing.contentType)
	s.w.WriteHeader(http.StatusOK)
	io.WriteString(s.w, s.framing.before)
	s.flusher.Flush()
}

// send sends an event, and reports whether that has worked.
func (s *streaming) send(e event) bool {
	s.begin()
	s.server.ledger.add(s.call.Model, Totals{Output: e.output, Reasoning: e.reasoning}) // before a client can see it
	if _, err := s.w.Write(s.framing.event(e, s.sent == 0)); err != nil {
		return false
	}
	s.sent++
	return s.flusher.Flush() == nil
}
