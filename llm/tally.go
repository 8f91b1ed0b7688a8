package llm

import (
	"math"
	"math/bits"
	"strconv"
)

// tally is what the values of a response have told. What a value tells counts once
// it is complete.
type tally struct {
	said    numbers
	written text
	behind  bool // text has come since output was last said
	running bool // output was last said beside a piece of an answer, before all answers had ended
	asked   int  // answers that were asked for; 0 is one
	ended   int  // answers that have ended
	fault   word

	// Of the value that is being read.
	now        numbers
	plain      text
	reasonings [2]text // under either name
	failed     bool    // it has an error
	answers    bool    // it has a piece of an answer, or a whole one
	ends       int     // how many of these are the last of their answers
	kind, code word
	faultKind  word
	faultCode  word
}

// numbers is what of the numbers was said.
type numbers struct {
	set uint32 // the bit of each that was said
	n   [numberNodes]int64
}

func (s *numbers) say(n node, v int64) { s.set |= 1 << n; s.n[n] = v }

func (s *numbers) has(n node) bool { return s.set&(1<<n) != 0 }

// saysOutput are the numbers that tell how much was generated.
const saysOutput uint32 = 1<<completionTokens | 1<<totalTokens | 1<<outputTokens |
	1<<geminiCandidates | 1<<geminiThoughts | 1<<geminiTotal | 1<<ollamaOutput | 1<<billedOutput

// text is how much text was seen.
type text struct {
	pieces int // that are not empty
	chars  int
}

// charsPerToken is more than nearly any text has, of any language.
const charsPerToken = 6

// least returns the fewest tokens that the text may have: every piece has one.
func (t text) least() int { return max(t.pieces, (t.chars+charsPerToken-1)/charsPerToken) }

func (t text) plus(o text) text { return text{t.pieces + o.pieces, t.chars + o.chars} }

// texts returns the text of the value that is being read.
func (t *tally) texts() text {
	if t.kind.is("response.audio.delta") { // its delta is no text
		return text{}
	}
	a, b := t.reasonings[0], t.reasonings[1]
	return t.plain.plus(text{max(a.pieces, b.pieces), max(a.chars, b.chars)})
}

// number notes a number of the value. Whatever is no whole number below 2^53
// is ignored.
func (t *tally) number(n node, b []byte) {
	if v, ok := whole(b); ok {
		t.now.say(n, v)
	}
}

// whole returns the number that b says, if it is a whole one from 0 to below 2^53.
func whole(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) >= maxWord { // or perhaps cut
		return 0, false
	}
	var v int64
	for i, c := range b {
		if c < '0' || c > '9' || i == 15 {
			f, err := strconv.ParseFloat(string(b), 64)
			return int64(f), err == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f)
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// commit makes what the value has told count, and begins another.
func (t *tally) commit() {
	for set := t.now.set; set != 0; set &= set - 1 {
		n := node(bits.TrailingZeros32(set))
		t.said.say(n, t.now.n[n])
	}
	written := t.texts()
	t.written = t.written.plus(written)
	t.ended += t.ends
	switch {
	case t.now.set&saysOutput != 0:
		t.behind, t.running = false, t.answers && t.ended < max(t.asked, 1)
	case written.pieces > 0:
		t.behind = true
	}
	if t.fault.n == 0 && (t.failed || t.kind.is("error")) {
		t.fault = t.faultNow()
	}
	t.drop()
}

// drop forgets the value that is being read.
func (t *tally) drop() {
	t.now.set = 0
	t.plain, t.reasonings = text{}, [2]text{}
	t.failed, t.answers, t.ends = false, false, 0
	t.kind.n, t.code.n, t.faultKind.n, t.faultCode.n = 0, 0, 0, 0
}

// faultNow returns the error that the value tells.
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

// input returns how many tokens the prompt was said to have.
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

// output returns how many tokens were said to be generated. Where a total is more
// than the prompt and what was generated, as with some servers that do not count
// reasoning to the latter, the rest was generated too.
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

// rest returns what of the total is not the prompt, or 0 where either was not said.
func (s *numbers) rest(total, prompt node) int64 {
	if !s.has(total) || !s.has(prompt) {
		return 0
	}
	return max(0, s.n[total]-s.n[prompt]-s.n[geminiToolUse])
}

// usage returns what was used. Text that is unfinished has not been told to count.
func (t *tally) usage(unfinished text) Usage {
	u := Usage{Input: -1}
	if in, ok := t.said.input(); ok {
		u.Input = int(min(in, math.MaxInt))
	}
	room := max(u.Input, 0)
	u.Cached = min(room, int(max(t.said.n[cachedTokens], t.said.n[cacheReadTokens], t.said.n[geminiCached])))
	u.CacheWrite = min(room-u.Cached, int(t.said.n[cacheWriteTokens]))

	out, ok := t.said.output()
	written := t.written.plus(unfinished)
	u.Output = int(min(out, math.MaxInt))
	u.Exact = ok && !t.behind && !t.running && unfinished.pieces == 0 && (out > 0 || written.pieces == 0)
	if !u.Exact {
		u.Output = max(u.Output, int(t.said.n[startedTokens]), written.least())
	}
	u.Reasoning = min(u.Output, int(max(t.said.n[reasoningTokens], t.said.n[geminiThoughts])))
	return u
}
