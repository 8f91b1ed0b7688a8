package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answer is what a model has to say to a call.
type answer struct {
	*Call
	*Reply
	at time.Time

	thoughts []string // tokens
	text     []string // tokens
	tool     *tool    // nil: none
	cut      bool     // by the most tokens that the call wants

	usage usage // of all answers to the call
}

// tool is a call of a tool, with the tokens of its arguments.
type tool struct {
	name      string
	id        string
	arguments []string
	cost      int // in tokens
}

// usage is what a call uses.
type usage struct {
	input, cached, cacheWrite int // cached and cacheWrite are of input
	output, reasoning         int // reasoning is of output
}

// fresh returns how many tokens of the prompt no cache has to do with.
func (u usage) fresh() int { return u.input - u.cached - u.cacheWrite }

// defaultOutput is how many tokens an answer has.
const defaultOutput = 16

func newAnswer(c *Call, r *Reply, now time.Time) *answer {
	a := &answer{Call: c, Reply: r, at: now}
	if c.API.generates() {
		a.think()
		a.speak()
		a.callTool()
	}
	a.usage.input = c.Prompt
	a.usage.cached = min(max(r.Cached, 0), c.Prompt)
	if c.API == Messages || c.API == Converse || c.API == Invoke {
		a.usage.cacheWrite = min(max(r.CacheWrite, 0), c.Prompt-a.usage.cached)
	}
	a.usage.reasoning = len(a.thoughts) * c.Answers
	a.usage.output = a.usage.reasoning + len(a.text)*c.Answers
	if a.tool != nil {
		a.usage.output += a.tool.cost * c.Answers
	}
	return a
}

// left returns how many tokens of an answer are left.
func (a *answer) left() int {
	return cmp.Or(a.MaxOutput, mostTokens) - len(a.thoughts) - len(a.text)
}

// most returns the tokens that are left for, and notes if that is not all.
func (a *answer) most(tokens []string) []string {
	if left := a.left(); len(tokens) > left {
		a.cut = true
		return tokens[:left]
	}
	return tokens
}

func (a *answer) think() { a.thoughts = a.most(say(max(a.Reasoning, 0))) }

func (a *answer) speak() {
	switch {
	case a.Text != "":
		a.text = a.most(split(a.Text))
	case a.Output > 0:
		a.text = a.most(say(a.Output))
	case a.Tool == nil:
		a.text = a.most(say(defaultOutput))
	}
}

// callTool calls the tool, if there are tokens left for all of it.
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

// said returns the text in one piece.
func (a *answer) said() string { return strings.Join(a.text, "") }

// thought returns the thoughts in one piece.
func (a *answer) thought() string { return strings.Join(a.thoughts, "") }

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

// id returns the answer's, with the prefix of an API.
func (a *answer) id(prefix string) string { return fmt.Sprintf("%smock%d", prefix, a.Number) }

// provider returns whose headers and errors the answer has.
func (a *answer) provider() Provider { return cmp.Or(a.As, a.Provider) }

// countedInput returns how many tokens of the prompt count towards limits: some
// providers do not count what was read from a cache.
func (a *answer) countedInput() int {
	switch a.provider() {
	case Anthropic, Groq, Bedrock:
		return a.usage.input - a.usage.cached
	}
	return a.usage.input
}

// failure returns the error that breaks the answer.
func (a *answer) failure() failure {
	f := failure{status: http.StatusInternalServerError, code: a.Code, message: "the mock was told to break off", model: a.Model}
	if a.provider() == Anthropic {
		f.status = statusOverloaded
	}
	return f
}
