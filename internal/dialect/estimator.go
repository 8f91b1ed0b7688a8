package dialect

import (
	"math"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Estimator estimates the tokens of a call from the last calls of its model and of its project. The
// zero Estimator is ready to use, by any number of goroutines.
//
// It aims at two things. At most five calls in a hundred use more than was reserved, be it of
// input, of output or of both together. And on average less than two and a half times the used
// tokens are reserved. Both hold from about the fiftieth call on, while the load drifts, and if it
// jumps now and then. Some loads allow only the first: those in which one call in twenty uses more
// than two and a half times the mean, such as answers whose length is lognormal with a sigma of 1
// and that have hardly any prompt, or a cache that holds the whole prompt four times in five.
//
// What the calls of other projects teach is bounded: it raises the figures of a project's first calls
// by no more than a small factor. So no project's calls can make those of another project too large
// for its limits.
type Estimator struct {
	histories historyCache
	contexts  contextCache
}

// What to reserve for an answer of a model and project without any history, in tokens.
const (
	unboundedAnswerMin = 256  // the least, where the request does not bound the answer
	unboundedAnswerMax = 2048 // the most then; between the two, as much as the prompt has
	boundedAnswerMin   = 1024 // the least where the request bounds the answer: its caller expects a long one
)

// maxEstimate is the largest estimate. The sum of a few of them does not overflow.
const maxEstimate = min(1<<53, math.MaxInt/4)

// Estimate returns how many tokens to reserve for a request, so that few calls use more. Before it
// has learned anything, it goes by the request alone. Calls without a project have a history of their
// own, like a project.
func (e *Estimator) Estimate(project string, r *Request) llm.Tokens {
	c := callOf(r)
	f := e.expect(project, r, c)
	t := llm.Tokens{Input: roundedTokens(f.input), Output: roundedTokens(min(f.output, c.bound))}
	d := dialectOf(r.Provider)
	switch {
	case d.countsBound == boundUncounted || !c.bounded():
	case d.countsBound == boundOrPrompt:
		t.Output = max(t.Output, roundedTokens(c.bound)-t.Input) // so that both together are the larger of the prompt and the bound
	default:
		t.Output = max(t.Output, roundedTokens(c.bound))
	}
	t.FreeInput = max(t.Input-roundedTokens(f.counted), 0)
	if d.outputIsFree {
		t.FreeOutput = t.Output
	}
	return t
}

// CountedBound returns how many tokens of output the request allows, if the provider's own limiter
// counts all of them, or 0. OpenAI counts the larger of these and the prompt, used or not; Azure counts
// both. Bedrock takes them first, and gives the unused ones back. What a call can use at most is another
// matter: see [Request.Most].
func (r *Request) CountedBound() int {
	if dialectOf(r.Provider).countsBound == boundUncounted {
		return 0
	}
	return r.Bound()
}

// Bound returns how many tokens of output the request allows in all answers, or 0 if it has no bound.
func (r *Request) Bound() int {
	c := callOf(r)
	if !c.bounded() {
		return 0
	}
	return roundedTokens(c.bound)
}

// Floor returns the least output tokens to charge for a request that was sent and whose response
// has not reported them: the expected ones, but no less than for a request without any history.
// Otherwise a project that has only ever had short answers could cut long ones off for next to
// nothing.
func (e *Estimator) Floor(project string, r *Request) int {
	c := callOf(r)
	f := e.expect(project, r, c)
	return roundedTokens(min(max(f.output, c.first().output), c.bound))
}

// expect returns the figures of a call after the model's history, and then the project's, have
// revised them. The stored context of the call comes on top.
func (e *Estimator) expect(project string, r *Request, c call) figures {
	first := c.first()
	shared := e.histories.revise(owner{r.Provider, r.Model, "", true}, c, first)
	f := e.histories.revise(owner{r.Provider, r.Model, project, false}, c, shared.atMost(first.taught()))
	if r.Context != "" {
		tokens := e.contexts.tokens(contextKeyOf(r.Provider, project, r.Context))
		if r.bound.fixed {
			r.bound.stored = max(tokens, 0)
		}
		stored := math.Abs(float64(tokens))
		f.input, f.counted = f.input+stored, f.counted+stored
	}
	return f
}

// Learn records what a call has used. It ignores a response that has not reported everything, such
// as a stream that was cut off: a client could teach it any figure with these. It also ignores what
// cannot be true, and the input of a call with a stored context, which says nothing of other prompts.
func (e *Estimator) Learn(project string, r *Request, used llm.Usage) {
	if !used.Exact {
		return
	}
	t := TokensOf(used, r.Provider, llm.TokenWeights{})
	f := figures{unreported, unreported, unreported}
	if t.Input >= 0 && t.Input <= maxCallTokens && r.Context == "" {
		f.input = float64(t.Input)
		f.counted = float64(t.Input - t.FreeInput)
	}
	if t.Output >= 0 && t.Output <= maxCallTokens && r.API.Generates() {
		f.output = float64(t.Output)
	}
	c := callOf(r)
	e.histories.learn(owner{r.Provider, r.Model, project, false}, c, f)
	most := c.first().taught()
	if f.input > most.input {
		f.input, f.counted = unreported, unreported
	}
	if f.output > most.output {
		f.output = unreported
	}
	e.histories.learn(owner{r.Provider, r.Model, "", true}, c, f)
}

// LearnContext records how many tokens a project's later call finds stored that continues this one,
// by the id of its response or by the stored context that the call itself has named.
func (e *Estimator) LearnContext(project string, r *Request, responseID string, used llm.Usage) {
	if !used.Exact || used.Input < 0 || max(used.Input, used.Output) > maxCallTokens {
		return
	}
	tokens := used.Input + used.Output
	if r.bound.truncates {
		tokens = -tokens
	}
	if r.Context != "" {
		key, most := contextKeyOf(r.Provider, project, r.Context), tokens
		if r.bound.fixed {
			most = max(most, e.contexts.tokens(key)) // other models may read more of it
		}
		e.contexts.set(key, most)
	}
	if responseID != "" {
		e.contexts.set(contextKeyOf(r.Provider, project, responseID), tokens)
	}
}

// figures are the tokens that a call uses, or is expected to use. They only serve estimates, so
// they may be fractions.
type figures struct {
	input   float64
	counted float64 // the part of the input that the provider counts
	output  float64 // of all answers
}

// maxCallTokens is more than any model reads or writes in one call. A response that reports more is
// wrong, and teaches nothing.
const maxCallTokens = 1 << 24

// What the calls of other projects may teach of a call, at most.
const (
	taughtInput    = 4    // factor of the input that is expected from the request alone
	taughtOverhead = 1024 // tokens beyond that, which a provider adds to any prompt
	taughtOutput   = 8    // factor of the output that is expected from the request alone
)

// taught returns the most that the calls of other projects may teach of a call whose figures without
// any history are f. Larger figures of theirs do not count at all.
func (f figures) taught() figures {
	input := taughtInput*f.input + taughtOverhead
	return figures{input, input, taughtOutput * f.output}
}

// atMost returns figures that are no larger than most.
func (f figures) atMost(most figures) figures {
	return figures{min(f.input, most.input), min(f.counted, most.counted), min(f.output, most.output)}
}

// unreported is the figure of a response that does not have it.
const unreported = -1

// call is what is known of a call before it is sent.
type call struct {
	prompt  float64
	answers float64
	bound   float64 // the most output of all answers; infinite where the request has no bound
}

func callOf(r *Request) call {
	c := call{
		prompt:  float64(max(r.Prompt, 0)),
		answers: float64(max(r.Answers, 1)),
		bound:   math.Inf(1),
	}
	switch {
	case !r.API.Generates():
		c.bound = 0
	case r.MaxOutput > 0:
		c.bound = float64(r.MaxOutput) * c.answers
	}
	return c
}

func (c call) bounded() bool { return !math.IsInf(c.bound, 1) }

// first returns the figures of a call without any history. Many clients allow far more than they
// ever need, so a bound is not taken as an estimate.
func (c call) first() figures {
	answer := min(max(c.prompt, unboundedAnswerMin), unboundedAnswerMax)
	if c.bounded() {
		answer = max(2*c.prompt, boundedAnswerMin)
	}
	input := c.prompt*9/8 + 16 // characters are only about a measure of tokens
	return figures{input, input, answer * c.answers}
}

// roundedTokens rounds a figure up to whole tokens, up to maxEstimate.
func roundedTokens(tokens float64) int {
	if tokens >= maxEstimate {
		return maxEstimate
	}
	return int(math.Ceil(tokens))
}
