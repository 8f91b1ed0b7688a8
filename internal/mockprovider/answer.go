package mockprovider

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// answer is a model's answer to a call.
type answer struct {
	*Call
	*Reply
	at time.Time

	thoughts []string // the tokens of the reasoning
	text     []string // the tokens of the text
	hidden   int      // the number of tokens without a text
	tool     *tool    // nil: the model calls no tool
	cut      bool     // the answer reached the most tokens that the call allows

	usage usage // the usage of all answers to the call
}

// tool is a call of a tool, with the tokens of its arguments.
type tool struct {
	name      string
	id        string
	arguments []string
	cost      int // in tokens
}

// usage is how many tokens a call uses.
type usage struct {
	input, cached, cacheWrite int // cached and cacheWrite are parts of input
	output, reasoning         int // reasoning is a part of output
	parts                     Parts
}

// fresh returns the tokens of the prompt that were neither read from a cache nor written to one.
func (u usage) fresh() int { return u.input - u.cached - u.cacheWrite }

// defaultOutput is how many tokens an answer has by default.
const defaultOutput = 16

func newAnswer(c *Call, r *Reply, now time.Time) *answer {
	a := &answer{Call: c, Reply: r, at: now}
	if c.API.Generates() {
		a.think()
		a.speak()
		a.callTool()
		a.hide()
	}
	a.usage.input = cmp.Or(r.Input, c.Prompt)
	a.usage.cached = min(max(r.Cached, 0), a.usage.input)
	if c.cacheWrites {
		a.usage.cacheWrite = min(max(r.CacheWrite, 0), a.usage.input-a.usage.cached)
	}
	a.usage.reasoning = len(a.thoughts) * c.Answers
	a.usage.output = a.usage.reasoning + (len(a.text)+a.hidden)*c.Answers
	if a.tool != nil {
		a.usage.output += a.tool.cost * c.Answers
	}
	if c.units != (llm.Units{}) && c.units[llm.TokenHours] == 0 && !byTokens(c.Model) {
		a.usage = usage{} // it is billed by its units
	}
	a.usage.parts = r.Parts.within(a.usage)
	return a
}

// left returns how many more tokens the answer may have.
func (a *answer) left() int {
	return cmp.Or(a.MaxOutput, maxTokens) - len(a.thoughts) - len(a.text)
}

// withinLimit returns the tokens that the answer still has room for, and marks the answer as cut if
// that is not all.
func (a *answer) withinLimit(tokens []string) []string {
	if left := a.left(); len(tokens) > left {
		a.cut = true
		return tokens[:left]
	}
	return tokens
}

func (a *answer) think() { a.thoughts = a.withinLimit(wordsOf(max(a.Reasoning, 0))) }

func (a *answer) speak() {
	switch {
	case a.Text != "":
		a.text = a.withinLimit(split(a.Text))
	case a.Output > 0:
		a.text = a.withinLimit(tokensOf(a.Token, a.Output))
	case a.Tool == nil:
		a.text = a.withinLimit(wordsOf(defaultOutput))
	}
}

// callTool calls the tool, if there is room for the whole call.
func (a *answer) callTool() {
	if a.Tool == nil {
		return
	}
	t := &tool{name: a.Tool.Name, id: fmt.Sprintf("call_mock%d", a.Number), arguments: split(cmp.Or(a.Tool.Arguments, "{}"))}
	t.cost = Count(t.name) + len(t.arguments)
	if t.cost > a.left() {
		a.cut = true
		return
	}
	a.tool = t
}

// hide adds the tokens without a text, as many as the answer still has room for.
func (a *answer) hide() {
	left := a.left()
	if a.tool != nil {
		left -= a.tool.cost
	}
	a.hidden = min(max(a.Hidden, 0), left)
	a.cut = a.cut || a.hidden < a.Hidden
}

// pieces returns tokens in pieces of as many as an event carries, each with its number of tokens.
func (a *answer) pieces(tokens []string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for piece := range slices.Chunk(tokens, max(a.Chunk, 1)) {
			if !yield(strings.Join(piece, ""), len(piece)) {
				return
			}
		}
	}
}

// fullText returns the text in one piece.
func (a *answer) fullText() string { return strings.Join(a.text, "") }

// fullThoughts returns the thoughts in one piece.
func (a *answer) fullThoughts() string { return strings.Join(a.thoughts, "") }

func (t *tool) argument() string { return strings.Join(t.arguments, "") }

// end returns why the answer ends, in the words of an API.
func (a *answer) end(done, cut, tool string) string {
	switch {
	case a.cut:
		return cut
	case a.tool != nil:
		return tool
	default:
		return done
	}
}

// id returns an id of the answer, with the prefix of an API.
func (a *answer) id(prefix string) string { return fmt.Sprintf("%smock%d", prefix, a.Number) }

// provider returns the provider whose headers and errors the answer has.
func (a *answer) provider() llm.Provider { return cmp.Or(a.As, a.Provider) }

// style returns what the provider has made of OpenAI's chat completions.
func (a *answer) style() chatStyle { return imitationOf(a.provider()).chat }

// countedInput returns how many tokens of the prompt count towards limits: some providers do not
// count tokens that were read from a cache.
func (a *answer) countedInput() int {
	if dialect.CachedIsFree(a.provider()) {
		return a.usage.input - a.usage.cached
	}
	return a.usage.input
}

// failure returns the error that breaks the answer off.
func (a *answer) failure() failure {
	status := cmp.Or(imitationOf(a.provider()).brokenBy, http.StatusInternalServerError)
	return failure{status: status, code: a.Code, message: "the mock was told to break off", model: a.Model}
}
