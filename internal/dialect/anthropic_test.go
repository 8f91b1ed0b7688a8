package dialect_test

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, anthropicStreams...) }

var anthropicStreams = []meterStream{
	{
		name: "messages, whole", api: dialect.Messages,
		body: `{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"thinking","thinking":"The user says hi","signature":"Er` + strings.Repeat("x", 300) + `"},` +
			`{"type":"text","text":"Hi! My name is Claude."},{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"city":"San Francisco, CA","days":[1,2,{"unit":"C"}]}}],` +
			`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":95,"cache_creation_input_tokens":188,"cache_read_input_tokens":1800,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":188,"ephemeral_1h_input_tokens":0},"output_tokens":70,"service_tier":"standard","server_tool_use":{"web_search_requests":0}}}`,
		want:  llm.Usage{Input: 2083, Cached: 1800, CacheWrite: 188, Output: 70, Exact: true},
		truth: 70,
	},
	{
		name: "messages, streamed", api: dialect.Messages,
		body: named(`{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","content":[],"model":"claude-sonnet-5-5","stop_reason":null,"stop_sequence":null,`+
			`"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":2}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type": "ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me solve this"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"27"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"calc","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 27}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":35}}`, `{"type":"message_stop"}`),
		want:  llm.Usage{Input: 135, Cached: 100, CacheWrite: 10, Output: 35, Exact: true},
		truth: 35,
	},
	{
		name: "messages, overloaded in the middle", api: dialect.Messages,
		body: named(`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":4}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`),
		want:  llm.Usage{Input: 25, Output: 4},
		fault: "overloaded_error",
		truth: 6,
	},
	{
		name: "parts: messages, written for an hour, in a batch", api: dialect.Messages,
		body: `{"type":"message","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":700,"cache_read_input_tokens":50,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":456,"ephemeral_1h_input_tokens":244},"output_tokens":3,"service_tier":"batch"}}`,
		want:  llm.Usage{Input: 760, Cached: 50, CacheWrite: 700, CacheWriteHour: 244, Output: 3, Tier: "batch", Exact: true},
		truth: 3,
	},
	{
		name: "parts: messages, streamed", api: dialect.Messages,
		body: named(`{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":700,"cache_read_input_tokens":50,`+
			`"cache_creation":{"ephemeral_5m_input_tokens":456,"ephemeral_1h_input_tokens":244},"output_tokens":1,"service_tier":"priority"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`, `{"type":"message_stop"}`),
		want:  llm.Usage{Input: 760, Cached: 50, CacheWrite: 700, CacheWriteHour: 244, Output: 3, Tier: "priority", Exact: true},
		truth: 3,
	},
	{
		name: "parts: Anthropic's speed", api: dialect.Messages,
		body:  `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":2,"speed":"fast","service_tier":"standard"}}`,
		want:  llm.Usage{Input: 3, Output: 2, Tier: "fast", Exact: true},
		truth: 2,
	},
	{
		name: "parts: Anthropic's speed, the usual one", api: dialect.Messages,
		body: sse(`{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1,"service_tier":"standard","speed":"standard"}}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"message_delta","usage":{"output_tokens":2}}`),
		want:  llm.Usage{Input: 3, Output: 2, Tier: "standard", Exact: true},
		truth: 2,
	},
	{
		name: "parts: Anthropic's tier, which says nothing about the speed", api: dialect.Messages,
		body:  `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":2,"service_tier":"standard"}}`,
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
}
