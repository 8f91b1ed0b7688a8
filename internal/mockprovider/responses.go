package mockprovider

import (
	"cmp"
	"errors"
	"iter"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// responses is OpenAI's responses.
type responses struct{}

func (responses) read(c *Call) error {
	f := c.fields
	if f["input"] == nil && f["prompt"] == nil {
		return errors.New("input: a text, or an array, or a stored prompt is required")
	}
	c.Stream = f.flag("stream")
	c.MaxOutput = f.number("max_output_tokens")
	c.Prompt = f.count("input", "instructions", "tools", "text")
	return nil
}

func (responses) framing(*Call) framing { return sse }

func (responses) usage(u usage) object {
	return object{
		"input_tokens":          u.input,
		"input_tokens_details":  u.inputDetails(),
		"output_tokens":         u.output,
		"output_tokens_details": u.outputDetails(),
		"total_tokens":          u.input + u.output,
	}
}

// response returns the object with the answer, as far as it has come.
func (responses) response(a *answer, status string, output []object, usage any) object {
	r := object{
		"id": a.id("resp_"), "object": "response", "created_at": a.at.Unix(), "model": a.Model, "status": status,
		"background": a.isBackground(), "error": nil, "incomplete_details": nil, "output": output, "usage": usage,
		"parallel_tool_calls": true, "tool_choice": "auto", "tools": []object{},
	}
	if usage != nil {
		r["tool_usage"] = a.toolUsage()
	}
	if status == "incomplete" {
		r["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	a.usage.parts.addTier(r, "service_tier", a.usage.parts.Tier)
	return r
}

// The tokens of each image that a tool generates.
const drawnInput, drawnOutput = 20, 500

// toolUsage returns what the tools of a response have used.
func (a *answer) toolUsage() object {
	images := a.units[llm.Images]
	return object{
		"web_search": object{"num_requests": a.units[llm.WebSearches]},
		"image_gen": object{
			"input_tokens": images * drawnInput, "input_tokens_details": object{"text_tokens": images * drawnInput, "image_tokens": 0},
			"output_tokens": images * drawnOutput, "output_tokens_details": object{"text_tokens": 0, "image_tokens": images * drawnOutput},
			"total_tokens": images * (drawnInput + drawnOutput),
		},
	}
}

// end returns the final response.
func (f responses) end(a *answer) object {
	return f.response(a, a.end("completed", "incomplete", "completed"), f.items(a), f.usage(a.usage))
}

func (f responses) whole(a *answer) object { return f.end(a) }

func (f responses) standing(a *answer, status string) object {
	return f.response(a, status, []object{}, nil)
}

// items returns the parts of the answer.
func (f responses) items(a *answer) []object {
	items := []object{}
	for range a.units[llm.WebSearches] {
		items = append(items, object{"id": a.id("ws_"), "type": "web_search_call", "status": "completed", "action": object{"type": "search", "query": "news"}})
	}
	if len(items) > 0 { // it is not billed
		items = append(items, object{"id": a.id("ws_"), "type": "web_search_call", "status": "completed", "action": object{"type": "open_page", "url": "https://example.com"}})
	}
	for range a.units[llm.Images] {
		items = append(items, object{"id": a.id("ig_"), "type": "image_generation_call", "status": "completed", "result": "iVBORw0KGgo="})
	}
	for range a.CodeRuns * int(min(a.units[llm.Containers], 1)) {
		if strings.Contains(string(a.Body), `"container_auto"`) {
			items = append(items, object{"id": a.id("sh_"), "type": "shell_call", "status": "completed", "call_id": a.id("call_"), "action": object{"commands": []string{"ls"}, "timeout_ms": nil, "max_output_length": nil}, "environment": nil})
			continue
		}
		items = append(items, object{"id": a.id("ci_"), "type": "code_interpreter_call", "status": "completed", "container_id": a.id("cntr_"), "code": "1 + 1", "outputs": nil})
	}
	for range a.units[llm.FileSearches] {
		items = append(items, object{"id": a.id("fs_"), "type": "file_search_call", "status": "completed", "queries": []string{"news"}, "results": nil})
	}
	if len(a.thoughts) > 0 {
		items = append(items, f.reasoning(a))
	}
	if len(a.text) > 0 {
		items = append(items, f.message(a, "completed", []object{f.part(a.fullText())}))
	}
	if a.tool != nil {
		items = append(items, f.toolCall(a, "completed", a.tool.argument()))
	}
	return items
}

func (responses) reasoning(a *answer) object {
	return object{"id": a.id("rs_"), "type": "reasoning", "summary": []object{}}
}

func (responses) message(a *answer, status string, content []object) object {
	return object{"id": a.id("msg_"), "type": "message", "role": "assistant", "status": status, "content": content}
}

func (responses) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

func (responses) toolCall(a *answer, status, arguments string) object {
	return object{"id": a.id("fc_"), "type": "function_call", "status": status, "call_id": a.tool.id, "name": a.tool.name, "arguments": arguments}
}

func (f responses) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		s := &responseStream{answer: a, sender: sender{yield: yield}}
		s.emit("response.created", object{"response": f.response(a, "in_progress", []object{}, nil)}, 0, 0)
		s.emit("response.in_progress", object{"response": f.response(a, "in_progress", []object{}, nil)}, 0, 0)
		s.thoughts()
		s.text()
		s.tool()
		end := f.end(a)
		s.emit("response."+end["status"].(string), object{"response": end}, 0, 0)
	}
}

func (f responses) broken(a *answer) event {
	r := f.response(a, "failed", []object{}, nil)
	why := a.failure()
	r["error"] = object{"code": cmp.Or(why.code, openAICodes.of(why.status)), "message": why.message}
	return event{name: "response.failed", data: object{"type": "response.failed", "response": r}}
}

// responseStream sends the events of one response.
type responseStream struct {
	responses
	*answer
	sender
	seq   int
	index int // the index of the item that is being sent
}

func (s *responseStream) emit(kind string, data object, output, reasoning int) {
	data["type"], data["sequence_number"] = kind, s.seq
	s.seq++
	s.send(event{name: kind, data: data, output: output, reasoning: reasoning})
}

func (s *responseStream) added(item object, output, reasoning int) {
	s.emit("response.output_item.added", object{"output_index": s.index, "item": item}, output, reasoning)
}

func (s *responseStream) done(item object) {
	s.emit("response.output_item.done", object{"output_index": s.index, "item": item}, 0, 0)
	s.index++
}

func (s *responseStream) thoughts() {
	if n := len(s.answer.thoughts); n > 0 {
		s.added(s.reasoning(s.answer), n, n)
		s.done(s.reasoning(s.answer))
	}
}

func (s *responseStream) text() {
	if len(s.answer.text) == 0 {
		return
	}
	at := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = s.id("msg_"), s.index, 0
		return more
	}
	s.added(s.message(s.answer, "in_progress", []object{}), 0, 0)
	s.emit("response.content_part.added", at(object{"part": s.part("")}), 0, 0)
	for text, n := range s.pieces(s.answer.text) {
		s.emit("response.output_text.delta", at(object{"delta": text, "logprobs": []object{}}), n, 0)
	}
	s.emit("response.output_text.done", at(object{"text": s.fullText(), "logprobs": []object{}}), 0, 0)
	s.emit("response.content_part.done", at(object{"part": s.part(s.fullText())}), 0, 0)
	s.done(s.message(s.answer, "completed", []object{s.part(s.fullText())}))
}

func (s *responseStream) tool() {
	t := s.answer.tool
	if t == nil {
		return
	}
	at := func(more object) object {
		more["item_id"], more["output_index"] = s.id("fc_"), s.index
		return more
	}
	s.added(s.toolCall(s.answer, "in_progress", ""), Count(t.name), 0)
	for _, token := range t.arguments {
		s.emit("response.function_call_arguments.delta", at(object{"delta": token}), 1, 0)
	}
	s.emit("response.function_call_arguments.done", at(object{"name": t.name, "arguments": t.argument()}), 0, 0)
	s.done(s.toolCall(s.answer, "completed", t.argument()))
}
