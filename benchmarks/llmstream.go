package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// streamEvents is how many deltas a stream has: an answer of a page, and so few that a stream in
// bursts cannot overrun the socket's buffer, which would be measuring TCP's timeouts.
const streamEvents = 400

// stream is a response as a provider sends it, event by event.
type stream struct {
	name   string
	api    llm.API
	events [][]byte
	usage  llm.Usage // what it says that it has used
	size   int       // in bytes
	hidden int       // how many of them tell nothing but usage
}

func (s stream) bytes() []byte { return bytes.Join(s.events, nil) }

// streamHeader is what tells that a response is a stream.
var streamHeader = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}

// streams are answers of so many deltas, of the two formats that most APIs have.
func streams(deltas int) []stream {
	all := []stream{chatStream(deltas), messagesStream(deltas)}
	for i, s := range all {
		all[i].size = len(s.bytes())
	}
	return all
}

// chatStream is OpenAI's, asked for usage.
func chatStream(deltas int) stream {
	const chunk = `data: {"id":"chatcmpl-CcP4d0mTqLr8xVnB2sYwKe6ZfUg1H","object":"chat.completion.chunk","created":1763216400,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_b54fe76834","choices":[%s],"usage":%s}` + "\n\n"
	s := stream{name: "chat", api: llm.Chat, usage: llm.Usage{Input: 512, Cached: 128, Output: deltas, Tier: "standard", Exact: true}}
	add := func(choice, usage string) { s.events = append(s.events, fmt.Appendf(nil, chunk, choice, usage)) }
	add(`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, "null")
	for i := range deltas {
		add(fmt.Sprintf(`{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}`, word(i)), "null")
	}
	add(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`, "null")
	add("", fmt.Sprintf(`{"prompt_tokens":512,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":128,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`, deltas, 512+deltas))
	s.hidden = len(s.events[len(s.events)-1])
	s.events = append(s.events, []byte("data: [DONE]\n\n"))
	return s
}

// messagesStream is Anthropic's.
func messagesStream(deltas int) stream {
	s := stream{name: "messages", api: llm.Messages, usage: llm.Usage{Input: 640, Cached: 128, Output: deltas, Exact: true}}
	add := func(event, rest string) {
		s.events = append(s.events, fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q%s}\n\n", event, event, rest))
	}
	add("message_start", `,"message":{"id":"msg_01XbYp9kZ3vR7wQnL5tH2cJd","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":512,"cache_creation_input_tokens":0,"cache_read_input_tokens":128,"output_tokens":1}}`)
	add("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	add("ping", "")
	for i := range deltas {
		add("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+word(i)+`"}`)
	}
	add("content_block_stop", `,"index":0`)
	add("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, deltas))
	add("message_stop", "")
	return s
}

// prose is what prompts and answers are made of: mostly words, with the line ends, quotes, code
// and foreign letters that make JSON strings longer than their texts.
var prose = strings.SplitAfter(`A limiter decides, before a call is sent, whether the provider would take it. It keeps a count of what was used `+
	`in the last minute, and asks: "is there room for this one, too?" Where there is none, the call waits its turn.

	if d := limiter.Take(key, tokens); !d.Allowed {
		return fmt.Errorf("try again in %v: limit <%s> & co", d.RetryAfter, d.Limit)
	}

Naïve counters let two windows' worth pass at a boundary; a café in Zürich or 東京 would call that „zwei zum Preis von einem“. `+
	`An exact one remembers when each request came, so that in any minute, wherever it begins, no more than the limit has passed.
`, " ")

// escapedProse are its words as they stand in a JSON string, as most SDKs write it.
var escapedProse = func() []string {
	var words []string
	for _, w := range prose {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(w); err != nil {
			panic(err)
		}
		words = append(words, b.String()[1:b.Len()-len("\"\n")])
	}
	return words
}()

// word is the i-th word of an endless text as it stands in a JSON string, with the space after it.
func word(i int) string { return escapedProse[i%len(escapedProse)] }

// serveStream serves a stream to whoever asks, with so many events a flush. With secure it speaks
// HTTP/2 over TLS, as providers do, otherwise HTTP/1.1.
func serveStream(s stream, burst int, secure bool) *httptest.Server {
	var bursts [][]byte
	for events := range slices.Chunk(s.events, burst) {
		bursts = append(bursts, bytes.Join(events, nil))
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", streamHeader.Get("Content-Type"))
		flush := http.NewResponseController(w).Flush
		for _, b := range bursts {
			if _, err := w.Write(b); err != nil {
				return
			}
			if err := flush(); err != nil {
				return
			}
		}
	}))
	if !secure {
		server.Start()
		return server
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	return server
}
