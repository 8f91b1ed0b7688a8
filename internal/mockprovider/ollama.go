package mockprovider

import (
	"iter"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider: dialect.Ollama,
	routes: []route{
		{end: "/api/chat", endpoint: endpoint{api: dialect.OllamaChat, format: ollama{chat: true}}},
		{end: "/api/generate", endpoint: endpoint{api: dialect.OllamaGenerate, format: ollama{}}},
		{end: "/api/embed", endpoint: endpoint{api: dialect.Embeddings, format: ollamaEmbed{}}},
	},
	errorBody:   func(f failure) object { return object{"error": f.message} },
	retryHeader: retryAfter,
})

// ollama is Ollama's chat, or its generate.
type ollama struct{ chat bool }

// read reads a call. A call that does not say otherwise is for a stream.
func (f ollama) read(c *Call) error {
	stream, said := c.fields["stream"].(bool)
	c.Stream = stream || !said
	c.MaxOutput = c.fields.in("options").number("num_predict")
	c.Prompt = c.fields.count("messages", "tools", "prompt", "system")
	return nil
}

func (ollama) framing(*Call) framing { return lines }

// piece returns a piece of an answer, or all of it.
func (f ollama) piece(a *answer, text, thinking string, t *tool) object {
	message := object{"role": "assistant", "content": text}
	p := object{"model": a.Model, "created_at": a.at.UTC().Format(time.RFC3339Nano), "done": false, "message": message}
	said := message
	if !f.chat {
		delete(p, "message")
		p["response"], said = text, p
	}
	if thinking != "" {
		said["thinking"] = thinking
	}
	if t != nil {
		said["tool_calls"] = []object{{"function": object{"name": t.name, "arguments": raw(t.argument())}}}
	}
	return p
}

// finish makes a piece the last one. It does not report the prompt's tokens if the whole prompt was
// cached.
func (ollama) finish(a *answer, p object) object {
	p["done"], p["done_reason"] = true, a.end("stop", "length", "stop")
	p["total_duration"], p["load_duration"], p["prompt_eval_duration"], p["eval_duration"] = 5000, 1000, 1000, 3000
	if a.usage.cached < a.usage.input {
		p["prompt_eval_count"] = a.usage.input
	}
	p["eval_count"] = a.usage.output
	return p
}

func (f ollama) whole(a *answer) object {
	return f.finish(a, f.piece(a, a.fullText(), a.fullThoughts(), a.tool))
}

func (f ollama) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		for text, n := range a.pieces(a.thoughts) {
			if !yield(event{data: f.piece(a, "", text, nil), output: n, reasoning: n}) {
				return
			}
		}
		for text, n := range a.pieces(a.text) {
			if !yield(event{data: f.piece(a, text, "", nil), output: n}) {
				return
			}
		}
		if t := a.tool; t != nil && !yield(event{data: f.piece(a, "", "", t), output: t.cost}) {
			return
		}
		yield(event{data: f.finish(a, f.piece(a, "", "", nil))})
	}
}

func (ollama) broken(a *answer) event {
	return event{data: a.failure().body(dialect.Ollama)}
}

// ollamaEmbed is Ollama's embed.
type ollamaEmbed struct{ embeddings }

func (f ollamaEmbed) whole(a *answer) object {
	vectors := make([]any, a.Answers)
	for i := range vectors {
		vectors[i] = f.vector(a, i)
	}
	return object{"model": a.Model, "embeddings": vectors, "total_duration": 5000, "load_duration": 1000, "prompt_eval_count": a.usage.input}
}
