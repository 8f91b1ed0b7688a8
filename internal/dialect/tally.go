package dialect

import (
	"math/bits"
	"net/http"
)

// tally accumulates what the JSON values of a response report. A value counts once it is complete.
type tally struct {
	reported     numbers
	written      text
	most         int  // the most tokens that the complete values show: see mostOutput
	textSince    bool // text has come since the output was last reported
	interim      bool // the output was last reported beside a piece of an answer, before all answers had ended
	answersAsked int  // how many answers the request asks for; 0 means one
	answersEnded int  // how many answers have ended
	fault        word
	id           word // of the response, if it can be fetched or continued
	status       word // of the response, when it last came
	ended        bool // the answer has ended, and nothing that matters follows
	tier         tier

	// What the value that is being read has so far.
	current    numbers
	tierNow    tier
	plain      text
	reasonings [2]text // under either of its two names
	failed     bool    // the value has an error
	hasAnswer  bool    // the value has a piece of an answer, or a whole one
	finished   int     // how many answers the value ends
	blocks     int     // how many calls of tools the value begins
	statusNow  word
	event      eventKind
	code       word
	faultKind  word
	faultCode  word
}

// text is an amount of text.
type text struct {
	pieces int // how many non-empty pieces
	chars  int
	bytes  int // no fewer than the text has in UTF-8
}

// charsPerToken is more than nearly any text has, in any language.
const charsPerToken = 6

// least returns the fewest tokens that the text can have: each piece has at least one.
func (t text) least() int { return max(t.pieces, (t.chars+charsPerToken-1)/charsPerToken) }

func (t text) plus(o text) text {
	return text{t.pieces + o.pieces, t.chars + o.chars, t.bytes + o.bytes}
}

// texts returns the text of the value that is being read.
func (t *tally) texts() text {
	if t.event == eventSilent {
		return text{}
	}
	a, b := t.reasonings[0], t.reasonings[1]
	return t.plain.plus(text{max(a.pieces, b.pieces), max(a.chars, b.chars), max(a.bytes, b.bytes)})
}

// commit adds the complete value to the tally, and begins another value.
func (t *tally) commit() {
	for set := t.current.present; set != 0; set &= set - 1 {
		n := number(bits.TrailingZeros64(uint64(set)))
		v := t.current.n[n]
		if summedNumbers>>n&1 != 0 && t.reported.has(n) {
			v = min(v+t.reported.n[n], maxNumber)
		}
		t.reported.set(n, v)
	}
	if t.tierNow != tierUntold {
		t.tier = t.tierNow
	}
	if t.statusNow.n > 0 {
		t.status = t.statusNow
	}
	written := t.texts()
	t.written = t.written.plus(written)
	t.answersEnded += t.finished
	switch {
	case t.current.present&outputNumbers != 0:
		t.textSince, t.interim = false, t.hasAnswer && t.answersEnded < max(t.answersAsked, 1)
	case written.pieces > 0:
		t.textSince = true
	}
	t.countMost(written)
	if t.fault.n == 0 && (t.failed || t.event == eventError) {
		t.fault = t.faultNow()
	}
	t.ended = t.ended || t.endsNow()
	t.drop()
}

// endsNow reports whether the complete value is the last one of a stream that matters: it says so by
// its type, it is an error, or it has the usage of a provider that reports that last.
func (t *tally) endsNow() bool {
	switch t.event {
	case eventUntyped:
		allEnded := t.answersEnded >= max(t.answersAsked, 1)
		return t.current.present&endNumbers != 0 || allEnded && t.reported.present&endAllNumbers != 0 || t.fault.n > 0
	case eventEnd:
		return true
	}
	return t.fault.n > 0
}

// drop forgets the value that is being read.
func (t *tally) drop() {
	t.current.present, t.tierNow = 0, tierUntold
	t.plain, t.reasonings = text{}, [2]text{}
	t.failed, t.hasAnswer, t.finished, t.blocks = false, false, 0, 0
	t.event = eventUntyped
	t.statusNow.n, t.code.n, t.faultKind.n, t.faultCode.n = 0, 0, 0, 0
}

// faultNow returns the error that the value reports.
func (t *tally) faultNow() word {
	switch {
	case t.faultCode.n > 0:
		return t.faultCode
	case t.faultKind.n > 0:
		return t.faultKind
	case t.event == eventError && t.code.n > 0:
		return t.code
	}
	var w word
	w.add([]byte("error"))
	return w
}

// A headerNumber is a header that has a number.
type headerNumber struct {
	name   string
	number number
}

// readHeaders reads usage from headers, of which the first has the input. They are those of a complete answer, so the
// text in its body adds nothing to them. Where they have input tokens alone, the response is an
// embedding, and nothing was generated. The service tier is in a header of streams, too.
func (t *tally) readHeaders(h http.Header, list []headerNumber) {
	if h == nil {
		return
	}
	for _, name := range tierHeaders {
		if told := tierOf([]byte(h.Get(name))); told != tierUntold {
			t.tier = told
		}
	}
	for i, header := range list {
		v, ok := whole([]byte(h.Get(header.name)))
		switch {
		case ok:
			t.reported.set(header.number, v)
			t.textSince = t.textSince && header.number != outputTokens
		case i == 0:
			return
		case header.number == outputTokens && !t.reported.has(outputTokens):
			t.reported.set(outputTokens, 0)
		}
	}
}
