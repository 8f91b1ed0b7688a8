package dialect

import "math"

// history is what the last calls of a model, or of one of its projects, have used.
type history struct {
	input         series  // input tokens per token of the prompt
	counted       series  // the part of the input that the provider counts, per token of the prompt
	output        series  // output tokens per answer
	longestPrompt float64 // about the longest prompt of the last calls
}

// promptOffset is added to every prompt. It keeps constant costs that show in short prompts, such
// as a provider's own instructions, from being taken for a rule of long ones.
const promptOffset = 64

// revise returns better figures for a call, by what the history knows.
func (h *history) revise(c call, f figures) figures {
	prompt := c.prompt + promptOffset
	known := figures{
		input:   h.input.revise(f.input, prompt),
		counted: h.counted.revise(f.counted, prompt),
		output:  h.output.revise(f.output, c.answers),
	}
	if c.prompt > 2*h.longestPrompt { // the history of short prompts says little about a long one
		known.input, known.counted = max(known.input, f.input), max(known.counted, f.counted)
	}
	return known
}

// learn records what a call has used, as far as it was reported. A call that has used more in all
// than was reserved counts as a miss of input and of output: otherwise each of the two could be
// exceeded seldom enough, and both together too often.
func (h *history) learn(c call, f figures) {
	prompt := c.prompt + promptOffset
	reserved := math.Ceil(h.counted.reserve*prompt) + math.Ceil(h.output.reserve*c.answers)
	over := max(f.counted, 0)+max(f.output, 0) > reserved
	if f.input != unreported {
		h.longestPrompt = max(c.prompt, h.longestPrompt*(1-1.0/lastCalls))
		h.input.learn(f.input/prompt, over)
		h.counted.learn(f.counted/prompt, over)
	}
	if f.output != unreported {
		h.output.learn(f.output/c.answers, over)
	}
}

const (
	lastCalls = 64 // how many calls a history remembers
	someCalls = 16 // how many calls a history needs to count alone

	// missRate is the part of calls that may use more than was reserved: one in twenty, with some
	// margin.
	missRate = 0.045

	// levelStep is how far a miss moves the level: by about one of the last calls. Every other call
	// moves it back by so little that it stays where it is while misses come at their rate.
	levelStep = 1.0 / lastCalls

	firstLevel    = 0.03
	lowestLevel   = -0.06 // a level below 0 reserves more than any of the last calls has used
	beyondLargest = 0.15  // the part of the largest figure that is added for each call that the level is below 0
	topLevel      = 0.12
	maxAbove      = 7 // how many calls may be above what is reserved: topLevel of all
)

// series is one figure of the last calls, and how much of it to reserve for the next one: so much
// that only a part of the last calls, the level, has used more. The level follows the misses
// (adaptive conformal inference), so in the long run they come at their rate whatever the
// distribution is, and while it changes. Few of the last calls are above what is reserved, so a
// jump up is followed within a few calls, and a jump down once all remembered calls are newer.
type series struct {
	n       uint64 // how many calls there have been
	level   float64
	reserve float64               // how much to reserve, per unit
	last    [lastCalls]float32    // figures of the last calls
	largest [maxAbove + 2]float32 // the largest of these, in falling order
}

// revise returns how many tokens to reserve for so many units, where tokens was the estimate
// before. It raises the estimate at once, and lowers it as calls accumulate.
func (s *series) revise(tokens, units float64) float64 {
	own := s.reserve * units
	trust := float64(min(s.n, someCalls)) / someCalls
	return max(own, own*trust+tokens*(1-trust))
}

// learn records a call's figure. over reports whether the call has used more in all than was
// reserved.
func (s *series) learn(figure float64, over bool) {
	x := float32(figure)
	switch {
	case s.n == 0:
		s.level = firstLevel
	case over || float64(x) > s.reserve:
		s.level = max(s.level-levelStep*(1-missRate), lowestLevel)
	default:
		s.level = min(s.level+levelStep*missRate, topLevel)
	}
	s.record(x)
	s.reserve = s.quantile()
}

// record puts a figure in the place of the oldest one.
func (s *series) record(x float32) {
	oldest := &s.last[s.n%lastCalls]
	gone := *oldest
	*oldest = x
	s.n++
	switch {
	case s.n <= lastCalls || gone < s.largest[len(s.largest)-1]:
		s.addLargest(x)
		return
	case gone == x:
		return
	}
	clear(s.largest[:])
	for _, x := range s.last {
		s.addLargest(x)
	}
}

// addLargest puts a figure among the largest, if it is one of them.
func (s *series) addLargest(x float32) {
	if x <= s.largest[len(s.largest)-1] {
		return
	}
	for i := range s.largest {
		if x > s.largest[i] {
			s.largest[i], x = x, s.largest[i]
		}
	}
}

// quantile returns the figure that the level's part of the last calls has exceeded, interpolated
// between two calls.
func (s *series) quantile() float64 {
	n := int(min(s.n, lastCalls))
	above := s.level * float64(n) // how many of the calls may be above
	if above <= 0 {
		return float64(s.largest[0]) * (1 - above*beyondLargest)
	}
	i := int(above)
	upper, lower := float64(s.largest[i]), float64(s.largest[min(i+1, n-1)])
	return upper - (upper-lower)*(above-float64(i))
}
