package dialect_test

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, cohereStreams...) }

var cohereStreams = []meterStream{
	{
		name: "Cohere, whole", api: dialect.CohereChat,
		body: `{"id":"c14c80c3","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"LLMs stand for Large Language Models."}]},` +
			`"usage":{"billed_units":{"input_tokens":5,"output_tokens":418},"tokens":{"input_tokens":71,"output_tokens":420},"cached_tokens":64}}`,
		want:  llm.Usage{Input: 71, Cached: 64, Output: 420, Exact: true},
		truth: 420,
	},
	{
		name: "Cohere, streamed", api: dialect.CohereChat,
		body: named(
			`{"id":"29f14a5a","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello"}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" there"}}}}`,
			`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"a\""}}}}}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":11},"tokens":{"input_tokens":67,"output_tokens":12.0}}}}`,
		),
		want:  llm.Usage{Input: 67, Output: 12, Exact: true},
		truth: 12,
	},
	{
		name: "Cohere, a stream that fails", api: dialect.CohereChat,
		body: named(
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello"}}}}`,
			`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"the model broke"}}`,
		),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "error",
		truth: 1,
	},
	{
		name: "Cohere's first version, whole", api: dialect.CohereChat,
		body: `{"text":"Hello there","generation_id":"g","chat_history":[{"role":"USER","message":"Hi"},{"role":"CHATBOT","message":"Hello there"}],` +
			`"finish_reason":"COMPLETE","meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":5,"output_tokens":3},"tokens":{"input_tokens":70,"output_tokens":4}}}`,
		want:  llm.Usage{Input: 70, Output: 4, Exact: true},
		truth: 4,
	},
	{
		name: "Cohere's first version, streamed", api: dialect.CohereChat,
		body: `{"is_finished":false,"event_type":"stream-start","generation_id":"g"}` + "\n" +
			`{"is_finished":false,"event_type":"text-generation","text":"Hello"}` + "\n" +
			`{"is_finished":false,"event_type":"text-generation","text":" there"}` + "\n" +
			`{"is_finished":true,"event_type":"stream-end","response":{"text":"Hello there","meta":{"billed_units":{"input_tokens":5,"output_tokens":3}}},"finish_reason":"COMPLETE"}` + "\n",
		want:  llm.Usage{Input: 5, Output: 3, Exact: true},
		truth: 3,
	},
	{
		name: "Cohere's embeddings", api: dialect.CohereEmbed,
		body: `{"id":"e","embeddings":{"float":[[0.1,0.2]]},"texts":["{\"meta\":{\"billed_units\":{\"input_tokens\":1}}}"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":9}},"response_type":"embeddings_by_type"}`,
		want: llm.Usage{Input: 9, Exact: true},
	},
	{
		name: "a rank, which tells no tokens", api: dialect.CohereRerank,
		body: `{"id":"r","results":[{"index":1,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}`,
		want: llm.Usage{Input: -1},
	},
}
