package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

const bodyModel = "gpt-4o"

const (
	bodyHead = `{"model":"` + bodyModel + `","stream":true,"max_tokens":1024,"temperature":0.2,"messages":[` +
		`{"role":"system","content":"You are a helpful assistant.\nAnswer \"briefly\"."}`
	bodyTail = `],"tools":[{"type":"function","function":{"name":"lookup","description":"Looks up a model's limits.","parameters":` +
		`{"type":"object","properties":{"model":{"type":"string"}},"required":["model"]}}}]}`
)

// chatBody is about so many bytes of talk, in so many messages after the first.
func chatBody(size, messages int) []byte {
	text := []byte(bodyHead)
	words := 0
	for i := range messages {
		role := [...]string{"user", "assistant"}[i%2]
		text = fmt.Appendf(text, `,{"role":%q,"content":"`, role)
		end := len(bodyHead) + (size-len(bodyHead)-len(bodyTail))*(i+1)/messages
		for len(text)+len(`"}`) < end {
			text = append(text, word(words)...)
			words++
		}
		text = append(text, `"}`...)
	}
	return append(text, bodyTail...)
}

// gatewayEvents are the 20 events of a stream of OpenAI's chat API that was asked for its usage.
var gatewayEvents = func() (events [][]byte) {
	const chunk = `data: {"id":"chatcmpl-CcP4d0mTqLr8xVnB2sYwKe6ZfUg1H","object":"chat.completion.chunk","created":1763216400,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_b54fe76834","choices":[%s],"usage":%s}` + "\n\n"
	const deltas = 16
	add := func(choice, usage string) { events = append(events, fmt.Appendf(nil, chunk, choice, usage)) }
	add(`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, "null")
	for i := range deltas {
		add(fmt.Sprintf(`{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}`, word(i)), "null")
	}
	add(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`, "null")
	add("", fmt.Sprintf(`{"prompt_tokens":512,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":128,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`, deltas, 512+deltas))
	return append(events, []byte("data: [DONE]\n\n"))
}()

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
