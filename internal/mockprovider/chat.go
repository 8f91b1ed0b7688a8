package mockprovider

import (
	"errors"
	"iter"
)

// chat is OpenAI's chat completions, and what others have made of them.
type chat struct{}

func (chat) read(c *Call) error {
	if _, ok := c.fields["messages"].([]any); !ok {
		return errors.New("messages: an array is required")
	}
	c.readCompletion()
	c.Prompt = c.fields.count("messages", "tools", "response_format")
	return nil
}

func (chat) framing(*Call) framing { return sseEnd }

func (chat) frame(a *answer, kind string) object {
	frame := object{"id": a.id("chatcmpl-"), "object": kind, "created": a.at.Unix(), "model": a.Model, "system_fingerprint": "fp_mock"}
	if a.style().namesProvider {
		frame["provider"] = "mock"
	}
	a.usage.parts.addTier(frame, "service_tier", a.usage.parts.Tier)
	return frame
}

func (chat) end(a *answer) string { return a.end("stop", "length", "tool_calls") }

func (f chat) whole(a *answer) object {
	choices := make([]object, a.Answers)
	for i := range choices {
		message := object{"role": "assistant", "content": nil, "refusal": nil}
		if len(a.text) > 0 {
			message["content"] = a.fullText()
		}
		if a.style().showsThoughts && len(a.thoughts) > 0 {
			message["reasoning"] = a.fullThoughts()
		}
		if t := a.tool; t != nil {
			message["tool_calls"] = []object{{"id": t.id, "type": "function", "function": object{"name": t.name, "arguments": t.argument()}}}
		}
		choices[i] = object{"index": i, "message": message, "logprobs": nil, "finish_reason": f.end(a)}
	}
	body := f.frame(a, "chat.completion")
	body["choices"], body["usage"] = choices, a.addCost(completionUsage(a.usage))
	return body
}

func (f chat) events(a *answer) iter.Seq[event] {
	c := &chunks{answer: a, frame: f.frame(a, "chat.completion.chunk")}
	return func(yield func(event) bool) {
		for _, d := range f.deltas(a) {
			for i := range a.Answers {
				choice := object{"index": i, "delta": d.delta, "logprobs": nil, "finish_reason": d.end}
				e := c.chunk([]object{choice}, d.output, d.reasoning)
				if name := a.style().usageBesideEnd; d.end != nil && name != "" {
					e.data[name] = object{"id": "req_mock", "usage": completionUsage(a.usage)}
				}
				if !yield(e) {
					return
				}
			}
		}
		if last, ok := c.usageChunk(); ok {
			yield(last)
		}
	}
}

func (f chat) broken(a *answer) event {
	c := &chunks{answer: a, frame: f.frame(a, "chat.completion.chunk")}
	return c.brokenChunk()
}

// delta is a piece of one answer.
type delta struct {
	delta             object
	end               any // why this is the last piece; nil before that
	output, reasoning int
}

// deltas returns the pieces of an answer.
func (f chat) deltas(a *answer) []delta {
	first := delta{delta: object{"role": "assistant", "content": "", "refusal": nil}}
	var list []delta
	if a.style().showsThoughts {
		list = append(list, first)
		for text, n := range a.pieces(a.thoughts) {
			list = append(list, delta{delta: object{"reasoning": text}, output: n, reasoning: n})
		}
	} else {
		first.output, first.reasoning = len(a.thoughts), len(a.thoughts)
		list = append(list, first)
	}
	for text, n := range a.pieces(a.text) {
		list = append(list, delta{delta: object{"content": text}, output: n})
	}
	if t := a.tool; t != nil {
		list = append(list, delta{output: Count(t.name), delta: object{"tool_calls": []object{{
			"index": 0, "id": t.id, "type": "function", "function": object{"name": t.name, "arguments": ""},
		}}}})
		for _, token := range t.arguments {
			list = append(list, delta{output: 1, delta: object{"tool_calls": []object{{"index": 0, "function": object{"arguments": token}}}}})
		}
	}
	return append(list, delta{delta: object{}, end: f.end(a)})
}
