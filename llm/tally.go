package llm

import "math/bits"

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
	kind, code word
	faultKind  word
	faultCode  word
}

// numbers are counts of tokens and other numbers, by their nodes.
type numbers struct {
	present uint64 // one bit for each number that was reported
	n       [numberNodes]int64
}

func (s *numbers) set(n node, v int64) { s.present |= 1 << n; s.n[n] = v }

func (s *numbers) clear(n node) { s.present &^= 1 << n }

func (s *numbers) has(n node) bool { return s.present&(1<<n) != 0 }

// outputNumbers are the numbers that include generated tokens.
const outputNumbers uint64 = 1<<completionTokens | 1<<totalTokens | 1<<outputTokens |
	1<<geminiCandidates | 1<<geminiThoughts | 1<<geminiTotal | 1<<ollamaOutput | 1<<billedOutput

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
	if t.kind.is("response.audio.delta") { // the delta is audio, not text
		return text{}
	}
	a, b := t.reasonings[0], t.reasonings[1]
	return t.plain.plus(text{max(a.pieces, b.pieces), max(a.chars, b.chars), max(a.bytes, b.bytes)})
}

// commit adds the complete value to the tally, and begins another value.
func (t *tally) commit() {
	for set := t.current.present; set != 0; set &= set - 1 {
		n := node(bits.TrailingZeros64(set))
		t.reported.set(n, t.current.n[n])
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
	if t.fault.n == 0 && (t.failed || t.kind.is("error")) {
		t.fault = t.faultNow()
	}
	t.ended = t.ended || t.endsNow()
	t.drop()
}

// endsNow reports whether the complete value is the last one of a stream that matters: it says so by
// its type, it is an error, or it has the usage of a provider that reports that last.
func (t *tally) endsNow() bool {
	switch string(t.kind.bytes()) {
	case "":
		answersEnded := t.answersEnded >= max(t.answersAsked, 1)
		return t.current.n[ollamaDone] == 1 && t.current.has(ollamaDone) || // Ollama's
			t.current.has(outputTokens) || // Bedrock's
			answersEnded && t.reported.has(geminiTotal) || t.fault.n > 0
	case "message_stop", "response.completed", "response.incomplete", "response.failed", "message-end", "stream-end":
		return true
	}
	return t.fault.n > 0
}

// drop forgets the value that is being read.
func (t *tally) drop() {
	t.current.present, t.tierNow = 0, tierUntold
	t.plain, t.reasonings = text{}, [2]text{}
	t.failed, t.hasAnswer, t.finished, t.blocks = false, false, 0, 0
	t.statusNow.n, t.kind.n, t.code.n, t.faultKind.n, t.faultCode.n = 0, 0, 0, 0, 0
}

// faultNow returns the error that the value reports.
func (t *tally) faultNow() word {
	switch {
	case t.faultCode.n > 0:
		return t.faultCode
	case t.faultKind.n > 0:
		return t.faultKind
	case t.kind.is("error") && t.code.n > 0:
		return t.code
	}
	var w word
	w.add([]byte("error"))
	return w
}

// input returns the tokens of the prompt, if they were reported.
func (s *numbers) input() (int64, bool) {
	switch {
	case s.has(promptTokens):
		return s.n[promptTokens], true
	case s.has(inputTokens):
		return s.n[inputTokens] + s.n[cacheWriteTokens] + s.n[cacheReadTokens], true
	case s.has(geminiPrompt):
		return s.n[geminiPrompt] + s.n[geminiToolUse], true
	case s.has(ollamaPrompt):
		return s.n[ollamaPrompt], true
	case s.has(billedInput):
		return s.n[billedInput], true
	}
	return 0, false
}

// output returns the generated tokens, if they were reported. Some servers leave reasoning out of
// the completion tokens: where the total is more than the prompt and the completion, the rest was
// generated too.
func (s *numbers) output() (int64, bool) {
	switch {
	case s.has(completionTokens):
		return max(s.n[completionTokens], s.rest(totalTokens, promptTokens)), true
	case s.has(outputTokens):
		return s.n[outputTokens], true
	case s.has(geminiCandidates):
		// Whether thoughts are among the candidates' varies; the total tells.
		if s.has(geminiTotal) && s.rest(geminiTotal, geminiPrompt) == s.n[geminiCandidates] {
			return s.n[geminiCandidates], true
		}
		return s.n[geminiCandidates] + s.n[geminiThoughts], true
	case s.has(geminiTotal) && s.has(geminiPrompt):
		return max(s.rest(geminiTotal, geminiPrompt), s.n[geminiThoughts]), true
	case s.has(geminiThoughts):
		return s.n[geminiThoughts], true
	case s.has(ollamaOutput):
		return s.n[ollamaOutput], true
	case s.has(totalTokens) && s.has(promptTokens):
		return s.rest(totalTokens, promptTokens), true
	case s.has(billedOutput):
		return s.n[billedOutput], true
	}
	return 0, false
}

// rest returns the total without the prompt, or 0 where either was not reported.
func (s *numbers) rest(total, prompt node) int64 {
	if !s.has(total) || !s.has(prompt) {
		return 0
	}
	return max(0, s.n[total]-s.n[prompt]-s.n[geminiToolUse])
}
