package mockprovider

import "iter"

// completions is OpenAI's legacy completions.
type completions struct{}

// read counts one answer for each of several prompts.
func (completions) read(c *Call) error {
	c.readCompletion()
	if prompts, ok := c.fields["prompt"].([]any); ok && len(prompts) > 0 {
		if _, number := prompts[0].(float64); !number {
			c.Answers *= len(prompts)
		}
	}
	c.Prompt = c.fields.count("prompt")
	return nil
}

func (completions) framing(*Call) framing { return sseEnd }

func (completions) frame(a *answer) object {
	return object{"id": a.id("cmpl-"), "object": "text_completion", "created": a.at.Unix(), "model": a.Model}
}

// choice returns a piece of an answer, or all of it.
func (completions) choice(index int, text string, end any) object {
	return object{"index": index, "text": text, "logprobs": nil, "finish_reason": end}
}

func (completions) end(a *answer) string { return a.end("stop", "length", "stop") }

func (f completions) whole(a *answer) object {
	choices := make([]object, a.Answers)
	for i := range choices {
		choices[i] = f.choice(i, a.fullText(), f.end(a))
	}
	body := f.frame(a)
	body["choices"], body["usage"] = choices, completionUsage(a.usage)
	return body
}

// events returns the events of the answer. The last one carries the tokens that are no text, since
// this API has no field for them.
func (f completions) events(a *answer) iter.Seq[event] {
	c := &chunks{answer: a, frame: f.frame(a)}
	return func(yield func(event) bool) {
		for text, n := range a.pieces(a.text) {
			for i := range a.Answers {
				if !yield(c.chunk([]object{f.choice(i, text, nil)}, n, 0)) {
					return
				}
			}
		}
		rest, thoughts := a.usage.output/a.Answers-len(a.text)-a.hidden, len(a.thoughts)
		for i := range a.Answers {
			if !yield(c.chunk([]object{f.choice(i, "", f.end(a))}, rest, thoughts)) {
				return
			}
		}
		if last, ok := c.usageChunk(); ok {
			yield(last)
		}
	}
}

func (f completions) broken(a *answer) event {
	c := &chunks{answer: a, frame: f.frame(a)}
	return c.brokenChunk()
}
