package dialect

import "math"

// blockTokens is more tokens than providers count for the marks around a block of an answer or a call of a tool, which
// come in no text.
const blockTokens = 32

// MostOutput returns the most tokens that all answers can have had, according to everything that was written: text has
// at most one token a byte. It is a bound only for requests whose output is visible: see [Request.Visible]. For a body
// that the meter cannot read, it is as large as a bound can be.
func (m *Meter) MostOutput() int {
	if m.format == formatOpaque || m.gunzip != nil || m.frames != nil && m.frames.broken {
		return math.MaxInt32
	}
	return min(m.stream.json.most+m.stream.json.unfinished().bytes, math.MaxInt32)
}

// countMost adds the complete value to the most tokens that the answers can have had. A value without text may stand
// for a token that shows no text yet. A count that the provider reports takes the place of all that came before it,
// and its own value counts on top of it unless it is the last: some servers report the count from before the value.
// Where there are several answers, a count beside a piece of one may be that of this answer alone.
func (t *tally) countMost(written text) {
	own := max(written.bytes, 1) + t.blocks*blockTokens
	if t.event == eventBlock {
		own += blockTokens
	}
	if t.current.present&outputNumbers == 0 || t.interim && t.answersAsked > 1 {
		t.most = min(t.most+own, math.MaxInt32)
		return
	}
	output, _ := t.reported.output()
	t.most = int(min(max(output, int64(t.written.least())), math.MaxInt32))
	if t.interim {
		t.most += own
	}
}
