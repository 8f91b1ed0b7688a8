package dialect_test

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, groqStreams...) }

var groqStreams = []meterStream{
	{
		name: "chat, Groq", api: dialect.Chat,
		body: sse(delta(`"content":"Fast"`), `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+
			`"x_groq":{"id":"req_1","usage":{"queue_time":0.061,"prompt_tokens":46,"prompt_time":0.001,"completion_tokens":3,"completion_time":0.02,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":32}}}}`, "[DONE]"),
		want:  llm.Usage{Input: 46, Cached: 32, Output: 3, Exact: true, Tier: "standard"},
		truth: 3,
	},
}
