package dialect

import (
	"cmp"
	"math"

	"dappco.re/go/core/go-ratelimit/llm"
)

// maxMost is the largest bound, so that the sum of a few of them does not overflow.
const maxMost = math.MaxInt32 * math.MaxInt32

// A requestBound is what bounds a request beside its settings.
type requestBound struct {
	prompt    int  // the most tokens of the prompt in the body, but for its images
	images    int  // how many images it has
	elsewhere bool // a part of the prompt is not in the body, so that the context window alone bounds it
	predicted int  // the most tokens of OpenAI's prediction: those that are rejected count as output
	fixed     bool // what the provider has stored as Context does not change
	truncates bool // the provider may leave out a part of what it has stored
	stored    int  // how many tokens the Context has at most, as far as an Estimator knows; 0: not known
}

// Most returns the most tokens that the prompt and all answers together can have, where m is what is published of the
// model. ok is false if nobody knows one of them, which is then 0. Unlike the figures of an [Estimator], a call never
// uses more, unless the provider itself runs tools for it and samples several times.
//
// An answer has as many tokens as the request allows, or else as many as the model can write, or else as many as the
// context window has. A prompt has no more tokens than its body has bytes, with a margin for what providers add, and no
// more than the context window. What is not in the body, such as files and stored conversations, is bounded by the
// window alone, and by what an Estimator knows of a stored context: see [Estimator.Estimate].
func (r *Request) Most(m llm.Maxima) (input, output int, ok bool) {
	if r.API == "" {
		return 0, 0, false
	}
	input, ok = r.mostInput(m)
	if !r.API.Generates() {
		return input, 0, ok
	}
	each := cmp.Or(r.MaxOutput, m.Output, m.Context)
	if each <= 0 {
		return input, 0, false
	}
	output = min(each, math.MaxInt32) * min(max(r.Answers, 1), math.MaxInt32)
	return input, min(output+r.bound.predicted, maxMost), ok
}

// mostInput returns the most tokens that the prompt can have. Where a provider bills more tokens for an image than the
// window counts, images come on top.
func (r *Request) mostInput(m llm.Maxima) (tokens int, ok bool) {
	b, window := &r.bound, min(max(m.Context, 0), maxMost)
	tokens = b.prompt
	if r.size == 0 { // it was not read from a body
		tokens = max(r.Prompt, 0)
	}
	images, beyond := 0, 0
	if b.images > 0 {
		rules := r.imageRules()
		images = b.images * rules.most(r.Model)
		if rules.beyond {
			beyond, images = images, 0
		}
	}
	tokens = min(tokens+images+b.stored, maxMost)
	switch {
	case b.elsewhere || r.Context != "" && b.stored == 0:
		tokens, ok = window, window > 0
	case window > 0 && r.isOnePrompt():
		tokens, ok = min(tokens, window), true
	default:
		ok = true
	}
	return min(tokens+beyond, maxMost), ok
}

// isOnePrompt reports whether the body has one prompt alone, so that the context window bounds it. The bodies of
// embeddings and rankings have many texts.
func (r *Request) isOnePrompt() bool { return r.API.Generates() && r.API.protocol().promptsIn == "" }
