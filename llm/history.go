package llm

import "math"

// history is what the last calls of a model, or of one project of it, have used.
type history struct {
	input   series  // by the token of the prompt
	counted series  // of that, what the provider counts
	output  series  // by the answer
	longest float64 // prompt of the last calls, about
}

// leastPrompt is added to every prompt, so that what comes on top of short ones, such
// as a provider's own instructions, is not taken for a rule of long ones.
const leastPrompt = 64

// revise returns figures of a call as the history knows them better.
func (h *history) revise(c call, f figures) figures {
	prompt := c.prompt + leastPrompt
	known := figures{
		input:   h.input.revise(f.input, prompt),
		counted: h.counted.revise(f.counted, prompt),
		output:  h.output.revise(f.output, c.answers),
	}
	if c.prompt > 2*h.longest { // short prompts tell little of it
		known.input, known.counted = max(known.input, f.input), max(known.counted, f.counted)
	}
	return known
}

// learn takes note of what a call has used, as far as that is told. A call that has
// used more in all than was reserved counts against input and output: else each of
// the two could be exceeded seldom enough, and both together too often.
func (h *history) learn(c call, f figures) {
	prompt := c.prompt + leastPrompt
	reserved := math.Ceil(h.counted.high*prompt) + math.Ceil(h.output.high*c.answers)
	over := max(f.counted, 0)+max(f.output, 0) > reserved
	if f.input != untold {
		h.longest = max(c.prompt, h.longest*(1-1.0/lastCalls))
		h.input.learn(f.input/prompt, over)
		h.counted.learn(f.counted/prompt, over)
	}
	if f.output != untold {
		h.output.learn(f.output/c.answers, over)
	}
}

const (
	lastCalls = 64 // are remembered
	someCalls = 16 // are enough to forget what was thought before

	// missRate is the part of calls that may use more than was reserved: one in
	// twenty, and some room.
	missRate = 0.045

	// levelStep is how far a miss moves the level: by about one of the last calls.
	// All other calls move it back by so little that it stays where it is while
	// misses come at their rate.
	levelStep = 1.0 / lastCalls

	firstLevel  = 0.03
	lowestLevel = -0.06 // below 0, more is reserved than any of the last calls has used:
	beyondMost  = 0.15  // this part of the most for each call that it is below
	topLevel    = 0.12
	mostAbove   = 7 // calls that may be above what is reserved: topLevel of all
)

// series is one figure of the last calls, and how much of it to reserve for the next
// one: so much that only a part of the last ones, the level, has used more. The level
// follows the misses (adaptive conformal inference), so in the long run they come at
// their rate whatever the distribution is, and while it changes. Because few of the
// last calls are above what is reserved, it takes but a few calls to follow a jump up,
// and as many as are remembered to follow one down.
type series struct {
	n     uint64 // how many calls there have been
	level float64
	high  float64 // what to reserve
	last  [lastCalls]float32
	most  [mostAbove + 2]float32 // of these, the largest first
}

// revise returns how many tokens to reserve for so many units of the figure, where it
// was thought before that it should be tokens. It believes in more at once, in less
// by and by.
func (s *series) revise(tokens, units float64) float64 {
	own := s.high * units
	trust := float64(min(s.n, someCalls)) / someCalls
	return max(own, own*trust+tokens*(1-trust))
}

// learn takes note of a call's figure, and of whether it was over what was reserved
// in all.
func (s *series) learn(figure float64, over bool) {
	x := float32(figure)
	switch {
	case s.n == 0:
		s.level = firstLevel
	case over || float64(x) > s.high:
		s.level = max(s.level-levelStep*(1-missRate), lowestLevel)
	default:
		s.level = min(s.level+levelStep*missRate, topLevel)
	}
	s.replace(x)
	s.high = s.quantile()
}

// replace puts a figure in the place of the oldest.
func (s *series) replace(x float32) {
	oldest := &s.last[s.n%lastCalls]
	gone := *oldest
	*oldest = x
	s.n++
	switch {
	case s.n <= lastCalls || gone < s.most[len(s.most)-1]:
		s.enter(x)
		return
	case gone == x:
		return
	}
	clear(s.most[:])
	for _, x := range s.last {
		s.enter(x)
	}
}

// enter puts a figure among the largest, if it is one of them.
func (s *series) enter(x float32) {
	if x <= s.most[len(s.most)-1] {
		return
	}
	for i := range s.most {
		if x > s.most[i] {
			s.most[i], x = x, s.most[i]
		}
	}
}

// quantile returns the figure that the level's part of the last calls has exceeded,
// between two of them where it falls between.
func (s *series) quantile() float64 {
	n := int(min(s.n, lastCalls))
	above := s.level * float64(n) // how many calls
	if above <= 0 {
		return float64(s.most[0]) * (1 - above*beyondMost)
	}
	i := int(above)
	upper, lower := float64(s.most[i]), float64(s.most[min(i+1, n-1)])
	return upper - (upper-lower)*(above-float64(i))
}
