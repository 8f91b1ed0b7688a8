package mockprovider

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider:    dialect.Anthropic,
	routes:      []route{{end: "/messages", endpoint: endpoint{api: dialect.Messages, format: messages{}, cacheWrites: true}}},
	counting:    map[string]string{"/messages/count_tokens": "input_tokens"},
	limits:      anthropicLimits,
	retryHeader: retryAfter,
	brokenBy:    dialect.StatusOverloaded,
	errorBody: func(f failure) object {
		return object{"type": "error", "error": object{"type": cmp.Or(f.code, anthropicTypes.of(f.status)), "message": f.message}, "request_id": "req_mock"}
	},
})

// anthropicTypes are Anthropic's words for errors.
var anthropicTypes = statusWords{
	0:                                "api_error",
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	dialect.StatusOverloaded:         "overloaded_error",
}

// anthropicLimits rounds the tokens that are left to thousands.
func anthropicLimits(h http.Header, at limitStates, l limitTime) {
	for name, s := range map[string]limitState{"requests": at.requests, "tokens": at.tokens, "input-tokens": at.input, "output-tokens": at.output} {
		if s.limit == 0 {
			continue
		}
		if name != "requests" {
			s.remaining = (s.remaining + 500) / 1000 * 1000
		}
		h.Set("Anthropic-Ratelimit-"+name+"-Limit", strconv.Itoa(s.limit))
		h.Set("Anthropic-Ratelimit-"+name+"-Remaining", strconv.Itoa(s.remaining))
		h.Set("Anthropic-Ratelimit-"+name+"-Reset", l.now.Add(s.reset).UTC().Format(time.RFC3339))
	}
}

// messages is Anthropic's messages.
type messages struct{}

func (messages) read(c *Call) error {
	f := c.fields
	c.Stream = f.flag("stream")
	c.MaxOutput = f.number("max_tokens")
	if c.MaxOutput == 0 {
		return errors.New("max_tokens: Field required")
	}
	if _, ok := f["messages"].([]any); !ok {
		return errors.New("messages: Field required")
	}
	c.Prompt = f.count("messages", "system", "tools")
	return nil
}

func (messages) framing(*Call) framing { return sse }

// usage reports the prompt in three parts, which add up.
func (messages) usage(u usage, output, thinking int) object {
	o := object{
		"input_tokens":                u.fresh(),
		"cache_creation_input_tokens": u.cacheWrite,
		"cache_creation": object{
			"ephemeral_5m_input_tokens": u.cacheWrite - u.parts.CacheWriteHour, "ephemeral_1h_input_tokens": u.parts.CacheWriteHour,
		},
		"cache_read_input_tokens": u.cached,
		"output_tokens":           output,
		"output_tokens_details":   object{"thinking_tokens": thinking},
	}
	if u.parts.Tier == "fast" {
		o["service_tier"], o["speed"] = "standard", "fast"
	} else {
		u.parts.addTier(o, "service_tier", u.parts.Tier)
	}
	return o
}

func (messages) message(a *answer, content []object, end any, usage object) object {
	return object{
		"id": a.id("msg_"), "type": "message", "role": "assistant", "model": a.Model,
		"content": content, "stop_reason": end, "stop_sequence": nil, "usage": usage,
	}
}

func (messages) end(a *answer) string { return a.end("end_turn", "max_tokens", "tool_use") }

func (f messages) whole(a *answer) object {
	content := []object{}
	if len(a.thoughts) > 0 {
		content = append(content, object{"type": "thinking", "thinking": a.fullThoughts(), "signature": signature})
	}
	if len(a.text) > 0 {
		content = append(content, object{"type": "text", "text": a.fullText()})
	}
	if t := a.tool; t != nil {
		content = append(content, object{"type": "tool_use", "id": t.id, "name": t.name, "input": raw(t.argument())})
	}
	m := f.message(a, content, f.end(a), f.finalUsage(a))
	m["container"] = f.container(a)
	return m
}

// container returns the container in which code has run, or nil.
func (messages) container(a *answer) any {
	if a.CodeRuns == 0 || !strings.Contains(string(a.Body), `"code_execution`) {
		return nil
	}
	return object{"id": a.id("container_"), "expires_at": a.at.Add(time.Hour).UTC().Format(time.RFC3339)}
}

// finalUsage reports all that a message has used, searches too.
func (f messages) finalUsage(a *answer) object {
	o := f.usage(a.usage, a.usage.output, a.usage.reasoning)
	if n := a.units[llm.WebSearches]; n > 0 || a.WebFetches > 0 {
		o["server_tool_use"] = object{"web_search_requests": n, "web_fetch_requests": a.WebFetches}
	}
	return o
}

// signature is the signature of thoughts.
const signature = "bW9jaw=="

func (f messages) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		s := &messageStream{answer: a, sender: sender{yield: yield}}
		started := f.message(a, []object{}, nil, f.usage(a.usage, min(1, a.usage.output), 0))
		s.emit("message_start", object{"message": started}, 0, 0)
		s.emit("ping", object{}, 0, 0)
		s.thoughts()
		s.text()
		s.tool()
		s.emit("message_delta", object{
			"delta": object{"stop_reason": f.end(a), "stop_sequence": nil, "container": f.container(a)},
			"usage": f.finalUsage(a),
		}, 0, 0)
		s.emit("message_stop", object{}, 0, 0)
	}
}

func (messages) broken(a *answer) event {
	return event{name: "error", data: a.failure().body(dialect.Anthropic)}
}

// messageStream sends the events of one message.
type messageStream struct {
	*answer
	sender
	index int // the index of the block that is being sent
}

func (s *messageStream) emit(kind string, data object, output, reasoning int) {
	data["type"] = kind
	s.send(event{name: kind, data: data, output: output, reasoning: reasoning})
}

func (s *messageStream) start(block object, output int) {
	s.emit("content_block_start", object{"index": s.index, "content_block": block}, output, 0)
}

func (s *messageStream) delta(kind, field, value string, output, reasoning int) {
	s.emit("content_block_delta", object{"index": s.index, "delta": object{"type": kind, field: value}}, output, reasoning)
}

func (s *messageStream) stop() {
	s.emit("content_block_stop", object{"index": s.index}, 0, 0)
	s.index++
}

func (s *messageStream) thoughts() {
	if len(s.answer.thoughts) == 0 {
		return
	}
	s.start(object{"type": "thinking", "thinking": "", "signature": ""}, 0)
	for text, n := range s.pieces(s.answer.thoughts) {
		s.delta("thinking_delta", "thinking", text, n, n)
	}
	s.delta("signature_delta", "signature", signature, 0, 0)
	s.stop()
}

func (s *messageStream) text() {
	if len(s.answer.text) == 0 {
		return
	}
	s.start(object{"type": "text", "text": ""}, 0)
	for text, n := range s.pieces(s.answer.text) {
		s.delta("text_delta", "text", text, n, 0)
	}
	s.stop()
}

func (s *messageStream) tool() {
	t := s.answer.tool
	if t == nil {
		return
	}
	s.start(object{"type": "tool_use", "id": t.id, "name": t.name, "input": object{}}, Count(t.name))
	for _, token := range t.arguments {
		s.delta("input_json_delta", "partial_json", token, 1, 0)
	}
	s.stop()
}
