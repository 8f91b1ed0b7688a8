package llm

import (
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
