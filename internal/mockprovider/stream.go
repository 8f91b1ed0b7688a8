package mockprovider

import (
	"io"
	"net/http"
)

// event is a piece of a stream.
type event struct {
	name string // empty: the event has no name
	data object

	// output and reasoning are the tokens that the event carries, for the totals. reasoning is a part
	// of output.
	output, reasoning int

	exception bool // in AWS's event streams: the name is an error's
}

// times returns the event with the tokens of n of its kind.
func (e event) times(n int) event {
	e.output, e.reasoning = n*e.output, n*e.reasoning
	return e
}

// sender passes events on until the receiver stops.
type sender struct {
	yield func(event) bool
	over  bool // the receiver has stopped
}

func (s *sender) send(e event) {
	if !s.over {
		s.over = !s.yield(e)
	}
}

// framing is how events are written into a body.
type framing struct {
	contentType   string
	before, after string             // texts before and after all events
	between, end  string             // texts between two events, and at the end of each
	sse           bool               // an event has a name and data; otherwise it is only its data
	frame         func(event) []byte // writes an event as a message of AWS's event streams; nil for other streams
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

// stream sends an answer in events, each after the delay of the reply.
func (e *exchange) stream(a *answer) {
	s := &streaming{exchange: e, framing: e.format.framing(a.Call), flusher: http.NewResponseController(e.w)}
	e.server.ledger.add(a.Model, Totals{Output: a.hidden * a.Answers})
	for event := range e.format.events(a) {
		if !e.waitDelay() || e.reply.Event != nil && !e.reply.Event(event.output) || e.applyFault(s, a) || !s.send(event) {
			return
		}
	}
	if e.applyFault(s, a) {
		return
	}
	io.WriteString(e.w, s.framing.after)
}

// applyFault applies the fault of the reply once it is due, and reports whether the stream is over.
func (e *exchange) applyFault(s *streaming, a *answer) bool {
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

// streaming is a stream that is being sent.
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

// send sends an event, and reports whether the client has got it.
func (s *streaming) send(e event) bool {
	s.begin()
	s.server.ledger.add(s.call.Model, Totals{Output: e.output, Reasoning: e.reasoning}) // counted before the client can see it
	if _, err := s.w.Write(s.framing.event(e, s.sent == 0)); err != nil {
		return false
	}
	s.sent++
	return s.flusher.Flush() == nil
}
