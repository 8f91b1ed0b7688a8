package llm

import (
	"cmp"
	"math"
	"strings"
)

// unknownMaxOutput is the most tokens of one answer of a model whose maximum is not in publishedMaxOutput. Few
// models are able to write more.
const unknownMaxOutput = 128_000

// publishedMaxOutput has the most tokens of one answer, as providers publish them, of models for which it is not
// unknownMaxOutput. A model is found by a part of its name: of two that fit, the one that comes first.
var publishedMaxOutput = []struct {
	name   string
	tokens int
}{
	{"gpt-5-pro", 272_000},
	{"gpt-5-chat", 16_384},
	{"gpt-4.1", 32_768},
	{"gpt-4.5", 16_384},
	{"gpt-4o", 16_384},
	{"gpt-4-turbo", 4_096},
	{"gpt-4-32k", 32_768},
	{"gpt-3.5-turbo", 4_096},
	{"gemini-2.5", 65_536},
	{"gemini-2.0", 8_192},
	{"gemini-1.5", 8_192},
}

// Maxima is how large the calls of a model can become, as its provider publishes it. 0 is not known.
type Maxima struct {
	Context int `json:"context,omitempty"`    // the context window: the most tokens of a prompt and one answer together
	Output  int `json:"max_output,omitempty"` // the most tokens of one answer
}

// maxMost is the largest bound, so that the sum of a few of them does not overflow.
const maxMost = math.MaxInt32 * math.MaxInt32

// Most returns the most tokens that the prompt and all answers together can have, where m is what is published of the
// model. ok is false if nobody knows. Unlike the figures of an [Estimator], a call never uses more.
func (r *Request) Most(m Maxima) (input, output int, ok bool) {
	if r.API == "" {
		return 0, 0, false
	}
	input, ok = r.mostInput(m)
	if !ok || !r.API.Generates() {
		return input, 0, ok
	}
	output = cmp.Or(r.MaxOutput, m.Output, m.Context)
	return input, min(output, math.MaxInt32) * min(max(r.Answers, 1), math.MaxInt32), output > 0
}

// mostInput returns the most tokens that the prompt can have. What the provider has stored is bounded by the context
// window alone.
func (r *Request) mostInput(m Maxima) (tokens int, ok bool) {
	if r.Context != "" {
		return m.Context, m.Context > 0
	}
	tokens = min(max(r.size, r.Prompt), maxMost) // text has at most one token a byte
	if m.Context > 0 {
		tokens = min(tokens, m.Context)
	}
	return tokens, true
}

// MostOutput returns the most tokens that all answers to the request can have together: as many as the request
// allows, or else as many as its model is able to write. It is for what may cost money that nobody sees in time,
// such as calls in the background, batches and answers that were cut off: where dollars are limited, no less may be
// reserved or charged for these.
func (r *Request) MostOutput() int {
	if !r.API.Generates() {
		return 0
	}
	most := r.MaxOutput
	if most == 0 {
		most = modelMaxOutput(r.Model)
	}
	return min(most, math.MaxInt32) * min(max(r.Answers, 1), math.MaxInt32)
}

// modelMaxOutput returns the most tokens of one answer of a model.
func modelMaxOutput(model string) int {
	model = strings.ToLower(model)
	for _, known := range publishedMaxOutput {
		if strings.Contains(model, known.name) {
			return known.tokens
		}
	}
	return unknownMaxOutput
}
