package mockprovider

import (
	"errors"
	"iter"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider: dialect.Cohere,
	routes: []route{
		{end: "/v2/chat", endpoint: endpoint{api: dialect.CohereChat, format: cohereChat{}}},
		{end: "/v2/embed", endpoint: endpoint{api: dialect.CohereEmbed, format: cohereEmbed{}}},
		{end: "/v2/rerank", endpoint: endpoint{api: dialect.CohereRerank, format: cohereRerank{}}},
	},
	errorBody:   func(f failure) object { return object{"id": "mock", "message": f.message} },
	retryHeader: retryAfter,
})

// cohereChat is Cohere's /v2/chat.
type cohereChat struct{}

func (cohereChat) read(c *Call) error {
	if _, ok := c.fields["messages"].([]any); !ok {
		return errors.New("invalid request: messages is required")
	}
	c.Stream = c.fields.flag("stream")
	c.MaxOutput = c.fields.number("max_tokens")
	c.Prompt = c.fields.count("messages", "tools", "documents")
	return nil
}

func (cohereChat) framing(*Call) framing { return sseEnd }

// usage reports all tokens, and fewer tokens that are billed, as Cohere does: it does not bill the
// text that it puts around the messages itself.
func (cohereChat) usage(u usage) object {
	return object{
		"billed_units":  object{"input_tokens": u.input / 2, "output_tokens": u.output - u.reasoning},
		"tokens":        object{"input_tokens": u.input, "output_tokens": u.output},
		"cached_tokens": u.cached,
	}
}

func (cohereChat) end(a *answer) string { return a.end("COMPLETE", "MAX_TOKENS", "TOOL_CALL") }

func (f cohereChat) whole(a *answer) object {
	content := []object{}
	if len(a.thoughts) > 0 {
		content = append(content, object{"type": "thinking", "thinking": a.fullThoughts()})
	}
	if len(a.text) > 0 {
		content = append(content, object{"type": "text", "text": a.fullText()})
	}
	message := object{"role": "assistant", "content": content}
	if t := a.tool; t != nil {
		message["tool_calls"] = []object{{"id": t.id, "type": "function", "function": object{"name": t.name, "arguments": t.argument()}}}
	}
	return object{"id": a.id(""), "finish_reason": f.end(a), "message": message, "usage": f.usage(a.usage)}
}

func (f cohereChat) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		s := &cohereStream{answer: a, sender: sender{yield: yield}}
		s.emit("message-start", object{"id": a.id(""), "delta": object{"message": object{"role": "assistant", "content": []any{}}}}, event{})
		s.content("thinking", a.thoughts, event{output: 1, reasoning: 1})
		s.content("text", a.text, event{output: 1})
		if t := a.tool; t != nil {
			s.call("tool-call-start", object{"id": t.id, "type": "function", "function": object{"name": t.name, "arguments": ""}}, Count(t.name))
			for _, token := range t.arguments {
				s.call("tool-call-delta", object{"function": object{"arguments": token}}, 1)
			}
			s.emit("tool-call-end", object{"index": s.index}, event{})
		}
		s.emit("message-end", object{"delta": object{"finish_reason": f.end(a), "usage": f.usage(a.usage)}}, event{})
	}
}

func (cohereChat) broken(a *answer) event {
	return event{name: "message-end", data: object{"type": "message-end", "delta": object{"finish_reason": "ERROR", "error": a.failure().message}}}
}

// cohereStream sends the events of one message.
type cohereStream struct {
	*answer
	sender
	index int // the index of the content that is being sent
}

// emit sends an event that carries the tokens of e.
func (s *cohereStream) emit(kind string, data object, e event) {
	data["type"] = kind
	e.name, e.data = kind, data
	s.send(e)
}

// content sends tokens of one type. e has the tokens that an event carries for each of them.
func (s *cohereStream) content(kind string, tokens []string, e event) {
	if len(tokens) == 0 {
		return
	}
	block := func(value object) object {
		return object{"index": s.index, "delta": object{"message": object{"content": value}}}
	}
	s.emit("content-start", block(object{"type": kind, kind: ""}), event{})
	for text, n := range s.pieces(tokens) {
		s.emit("content-delta", block(object{kind: text}), e.times(n))
	}
	s.emit("content-end", object{"index": s.index}, event{})
	s.index++
}

// call sends a piece of a call of a tool.
func (s *cohereStream) call(kind string, piece object, output int) {
	s.emit(kind, object{"index": s.index, "delta": object{"message": object{"tool_calls": piece}}}, event{output: output})
}

// cohereEmbed is Cohere's /v2/embed. It has no streams.
type cohereEmbed struct{ embeddings }

func (cohereEmbed) read(c *Call) error {
	texts, _ := c.fields["texts"].([]any)
	inputs, _ := c.fields["inputs"].([]any)
	c.Answers = len(texts) + len(inputs)
	if c.Answers == 0 {
		return errors.New("invalid request: texts, images or inputs is required")
	}
	c.Prompt = c.fields.count("texts", "inputs")
	return nil
}

func (f cohereEmbed) whole(a *answer) object {
	vectors := make([]any, a.Answers)
	for i := range vectors {
		vectors[i] = f.vector(a, i)
	}
	return object{
		"id": a.id(""), "response_type": "embeddings_by_type", "embeddings": object{"float": vectors}, "texts": a.fields["texts"],
		"meta": object{"api_version": object{"version": "2"}, "billed_units": object{"input_tokens": a.usage.input}},
	}
}

// cohereRerank is Cohere's /v2/rerank. It has no streams, and reports no tokens.
type cohereRerank struct{ embeddings }

func (cohereRerank) read(c *Call) error {
	documents, _ := c.fields["documents"].([]any)
	c.Answers = len(documents)
	if c.Answers == 0 || c.fields.text("query") == "" {
		return errors.New("invalid request: query and documents are required")
	}
	c.units[llm.SearchUnits] = int64((c.Answers + 99) / 100)
	return nil
}

func (cohereRerank) whole(a *answer) object {
	results := make([]object, a.Answers)
	for i := range results {
		results[i] = object{"index": i, "relevance_score": 1 / float64(i+1)}
	}
	return object{"id": a.id(""), "results": results, "meta": object{"api_version": object{"version": "2"}, "billed_units": object{"search_units": a.units[llm.SearchUnits]}}}
}
