package llm

import "math"

// Estimator estimates what calls will use by what calls before them have used: of
// each model, and of each project of it, it knows the last few. The zero Estimator
// is ready to use, and may be used by many goroutines at a time.
//
// It aims at two things: that of a hundred calls at most five use more than was
// reserved, be it of input, of output or of both together, and that on average less
// than two and a half times what is used is reserved. Both hold from about the
// fiftieth call on, while the load drifts, and if it jumps now and then. Some loads
// allow only the first, those in which one call in twenty uses more than that many
// times the mean: answers whose length is lognormal with a sigma of 1, if hardly any
// prompt comes with them; a cache that holds all of the prompt, four times in five.
type Estimator struct {
	memory memory
}

// What is reserved for the answer of a call of which nothing is known yet.
const (
	shortAnswer   = 256  // at least, where the request does not bound it,
	longAnswer    = 2048 // and at most; between the two, as much as the prompt has
	boundedAnswer = 1024 // at least, where the request bounds it: then it may be long
)

// mostTokens is the largest estimate. A few of them can be added.
const mostTokens = min(1<<53, math.MaxInt/4)

// Estimate returns how many tokens to reserve for a request: so many that few calls
// use more. Before anything was learned it goes by the request alone. One without a
// project goes by the calls of all.
func (e *Estimator) Estimate(project string, r *Request) Tokens {
	c := callOf(r)
	f := e.expect(project, r, c)
	t := Tokens{Input: roundedTokens(f.input), Output: roundedTokens(min(f.output, c.bound))}
	if c.bounded() && (r.Provider == OpenAI || r.Provider == Azure) {
		t.Output = max(t.Output, roundedTokens(c.bound)-t.Input) // they count what is allowed, used or not
	}
	if c.bounded() && r.Provider == Bedrock {
		t.Output = max(t.Output, roundedTokens(c.bound)) // it takes all that is allowed at first, and gives back what was not used
	}
	t.FreeInput = max(t.Input-roundedTokens(f.counted), 0)
	t.FreeOutput = Usage{Input: t.Input, Output: t.Output}.Tokens(r.Provider).FreeOutput
	return t
}

// Floor returns how many tokens of output to charge at least for a request that was sent,
// and whose response has not told them: what is expected of it, and no less than of a
// request of which nothing is known. So a project that has taught short answers cannot cut
// long ones off for next to nothing.
func (e *Estimator) Floor(project string, r *Request) int {
	c := callOf(r)
	f := e.expect(project, r, c)
	return roundedTokens(min(max(f.output, c.first().output), c.bound))
}

// expect returns the figures of a call as the model's history, and then the project's,
// know them.
func (e *Estimator) expect(project string, r *Request, c call) figures {
	f := e.memory.revise(modelOf(r), c, c.first())
	if project != "" {
		f = e.memory.revise(projectOf(r, project), c, f)
	}
	return f
}

// Learn takes note of what a call has used. It learns nothing of a response that has not
// told all, such as a stream that was cut off: by that a client could teach any figure.
func (e *Estimator) Learn(project string, r *Request, used Usage) {
	if !used.Exact {
		return
	}
	t := used.Tokens(r.Provider)
	f := figures{untold, untold, untold}
	if t.Input >= 0 {
		f.input = float64(t.Input)
		f.counted = float64(t.Input - t.FreeInput)
	}
	if t.Output >= 0 && r.API.generates() {
		f.output = float64(t.Output)
	}
	if f.input == untold && f.output == untold {
		return
	}
	c := callOf(r)
	e.memory.learn(modelOf(r), c, f)
	if project != "" {
		e.memory.learn(projectOf(r, project), c, f)
	}
}

// figures is what a call uses, or is thought to use, in tokens. They only estimate,
// so they may be fractions.
type figures struct {
	input   float64
	counted float64 // of input, what the provider counts
	output  float64 // of all answers
}

const untold = -1 // is a figure that the response does not tell

// call is what is known of a call before it is made.
type call struct {
	prompt  float64
	answers float64
	bound   float64 // of the output of all answers; infinite where there is none
}

func callOf(r *Request) call {
	c := call{
		prompt:  float64(max(r.Prompt, 0)),
		answers: float64(max(r.Answers, 1)),
		bound:   math.Inf(1),
	}
	switch {
	case !r.API.generates():
		c.bound = 0
	case r.MaxOutput > 0:
		c.bound = float64(r.MaxOutput) * c.answers
	}
	return c
}

func (c call) bounded() bool { return !math.IsInf(c.bound, 1) }

// first returns the figures of a call of which nothing is known but itself. Many
// allow far more than they ever expect, so a bound is not taken at its word.
func (c call) first() figures {
	answer := min(max(c.prompt, shortAnswer), longAnswer)
	if c.bounded() {
		answer = max(2*c.prompt, boundedAnswer)
	}
	input := c.prompt*9/8 + 16 // tokens are not quite what characters tell
	return figures{input, input, answer * c.answers}
}

// roundedTokens rounds a figure up, to as much as an estimate may be.
func roundedTokens(tokens float64) int {
	if tokens >= mostTokens {
		return mostTokens
	}
	return int(math.Ceil(tokens))
}
