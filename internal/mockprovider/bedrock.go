package mockprovider

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider: dialect.Bedrock,
	routes: []route{
		{end: "/converse", endpoint: endpoint{api: dialect.Converse, format: converse{}, cacheWrites: true}},
		{end: "/converse-stream", endpoint: endpoint{api: dialect.Converse, format: converse{}, cacheWrites: true, stream: true}},
		{end: "/invoke", endpoint: endpoint{api: dialect.Invoke, format: invoke{}, cacheWrites: true}},
		{end: "/invoke-with-response-stream", endpoint: endpoint{api: dialect.Invoke, format: invoke{}, cacheWrites: true, stream: true}},
	},
	modelFolder: "/model/",
	errorBody:   func(f failure) object { return object{"message": f.message} },
	retryHeader: retryAfter,
	errorHeader: func(h http.Header, f failure) {
		h.Set("X-Amzn-Errortype", cmp.Or(f.code, amazonCodes.of(f.status))+":http://internal.amazon.com/")
	},
})

// amazonCodes are Amazon's words for errors.
var amazonCodes = statusWords{
	0:                              "ValidationException",
	http.StatusForbidden:           "AccessDeniedException",
	http.StatusNotFound:            "ResourceNotFoundException",
	http.StatusTooManyRequests:     "ThrottlingException",
	http.StatusInternalServerError: "InternalServerException",
	http.StatusServiceUnavailable:  "ServiceUnavailableException",
}

// converse is Bedrock's converse and converse-stream.
type converse struct{}

func (converse) read(c *Call) error {
	if _, ok := c.fields["messages"].([]any); !ok {
		return errors.New("messages: a conversation is required")
	}
	c.MaxOutput = c.fields.in("inferenceConfig").number("maxTokens")
	c.Prompt = c.fields.count("messages", "system", "toolConfig")
	return nil
}

func (converse) framing(*Call) framing { return converseFrames }

func (converse) end(a *answer) string { return a.end("end_turn", "max_tokens", "tool_use") }

// usage reports the prompt in three parts, which add up.
func (converse) usage(u usage) object {
	o := object{
		"inputTokens": u.fresh(), "outputTokens": u.output, "totalTokens": u.input + u.output,
		"cacheReadInputTokens": u.cached, "cacheWriteInputTokens": u.cacheWrite,
	}
	if hour := u.parts.CacheWriteHour; hour > 0 {
		o["cacheDetails"] = []object{{"ttl": "1h", "inputTokens": hour}, {"ttl": "5m", "inputTokens": u.cacheWrite - hour}}
	}
	return o
}

func (f converse) whole(a *answer) object {
	content := []object{}
	if len(a.thoughts) > 0 {
		content = append(content, object{"reasoningContent": object{"reasoningText": object{"text": a.fullThoughts(), "signature": signature}}})
	}
	if len(a.text) > 0 {
		content = append(content, object{"text": a.fullText()})
	}
	if t := a.tool; t != nil {
		content = append(content, object{"toolUse": object{"toolUseId": t.id, "name": t.name, "input": raw(t.argument())}})
	}
	body := object{
		"output": object{"message": object{"role": "assistant", "content": content}}, "stopReason": f.end(a),
		"usage": f.usage(a.usage), "metrics": object{"latencyMs": 1},
	}
	a.usage.parts.addTier(body, "serviceTier", object{"type": a.usage.parts.Tier})
	return body
}

func (f converse) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		s := &converseStream{answer: a, sender: sender{yield: yield}}
		s.emit("messageStart", object{"role": "assistant"}, event{})
		s.block(a.thoughts, func(token string) object { return object{"reasoningContent": object{"text": token}} }, event{output: 1, reasoning: 1})
		s.block(a.text, func(token string) object { return object{"text": token} }, event{output: 1})
		if t := a.tool; t != nil {
			s.tool(t)
		}
		s.emit("messageStop", object{"stopReason": f.end(a)}, event{})
		metadata := object{"usage": f.usage(a.usage), "metrics": object{"latencyMs": 1}}
		a.usage.parts.addTier(metadata, "serviceTier", object{"type": a.usage.parts.Tier})
		s.emit("metadata", metadata, event{})
	}
}

func (converse) broken(a *answer) event {
	f := a.failure()
	return event{name: cmp.Or(f.code, "internalServerException"), data: f.body(dialect.Bedrock), exception: true}
}

// converseStream sends the events of one message.
type converseStream struct {
	*answer
	sender
	index int // the index of the block that is being sent
}

// emit sends an event that carries the tokens of e.
func (s *converseStream) emit(kind string, data object, e event) {
	data["p"] = "abcd" // padding
	e.name, e.data = kind, data
	s.send(e)
}

// block sends tokens of one type. e has the tokens that an event carries for each of them.
func (s *converseStream) block(tokens []string, delta func(string) object, e event) {
	if len(tokens) == 0 {
		return
	}
	for text, n := range s.pieces(tokens) {
		s.emit("contentBlockDelta", object{"contentBlockIndex": s.index, "delta": delta(text)}, e.times(n))
	}
	s.emit("contentBlockStop", object{"contentBlockIndex": s.index}, event{})
	s.index++
}

// tool sends a call of a tool.
func (s *converseStream) tool(t *tool) {
	start := object{"toolUse": object{"toolUseId": t.id, "name": t.name}}
	s.emit("contentBlockStart", object{"contentBlockIndex": s.index, "start": start}, event{output: Count(t.name)})
	s.block(t.arguments, func(token string) object { return object{"toolUse": object{"input": token}} }, event{output: 1})
}

// invoke is Bedrock's invoke and invoke-with-response-stream, with one of Anthropic's models, or one that embeds, ranks or
// makes images.
type invoke struct{ messages }

func (f invoke) read(c *Call) error {
	switch {
	case c.fields["inputText"] != nil: // one of Titan's embeddings
		c.API, c.Prompt = dialect.Embeddings, c.fields.count("inputText")
		return nil
	case c.fields["documents"] != nil:
		c.API = dialect.CohereRerank
		return cohereRerank{}.read(c)
	case c.fields["taskType"] != nil, strings.HasPrefix(c.Model, "stability."):
		c.API, c.Answers = dialect.ImageGeneration, max(c.fields.in("imageGenerationConfig").number("numberOfImages"), 1)
		c.units[llm.Images] = int64(c.Answers)
		return nil
	}
	stream := c.Stream // from the path
	err := f.messages.read(c)
	c.Stream = stream
	return err
}

func (f invoke) whole(a *answer) object {
	switch a.API {
	case dialect.Embeddings:
		return object{"embedding": embeddings{}.vector(a, 0), "inputTextTokenCount": a.usage.input}
	case dialect.CohereRerank:
		return object{"results": cohereRerank{}.whole(a)["results"]}
	case dialect.ImageGeneration:
		return object{"images": slices.Repeat([]string{"iVBORw0KGgo="}, a.Answers), "error": nil}
	}
	return f.messages.whole(a)
}

func (invoke) framing(*Call) framing { return invokeFrames }

// events returns the events of the model. The last one has Bedrock's own metrics too.
func (f invoke) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		for e := range f.messages.events(a) {
			if e.name == "message_stop" {
				e.data["amazon-bedrock-invocationMetrics"] = object{
					"inputTokenCount": a.usage.fresh(), "outputTokenCount": a.usage.output, "invocationLatency": 1, "firstByteLatency": 1,
					"cacheReadInputTokenCount": a.usage.cached, "cacheWriteInputTokenCount": a.usage.cacheWrite,
				}
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (invoke) broken(a *answer) event { return converse{}.broken(a) }

// headers writes the usage of an Invoke call into headers.
func (invoke) headers(h http.Header, u usage) {
	for name, n := range map[string]int{"Input": u.fresh(), "Output": u.output, "Cache-Read-Input": u.cached, "Cache-Write-Input": u.cacheWrite} {
		h.Set("X-Amzn-Bedrock-"+name+"-Token-Count", strconv.Itoa(n))
	}
}
