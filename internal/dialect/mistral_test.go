package dialect_test

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, mistralStreams...) }

var mistralStreams = []meterStream{
	{
		name: "parts: a conversation, streamed", api: dialect.Conversations,
		body: sse(`{"type":"conversation.response.started","conversation_id":"c"}`, `{"type":"message.output.delta","output_index":0,"id":"m","content":"Hi"}`,
			`{"type":"message.output.delta","output_index":0,"id":"m","content":[{"type":"text","text":" there"}]}`,
			`{"type":"conversation.response.done","usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":52,"connector_tokens":40}}`),
		want:  llm.Usage{Input: 9, Output: 43, Exact: true},
		truth: 43,
	},
}
