package dialect_test

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, geminiStreams...) }

var geminiStreams = []meterStream{
	{
		name: "generate, whole, thoughts beside candidates", api: dialect.Generate,
		body: "{\n  \"candidates\": [\n    {\n      \"content\": {\n        \"parts\": [\n          {\n            \"text\": \"It is \\u003cb\\u003ewarm\\u003c/b\\u003e\",\n            \"thoughtSignature\": \"AbCd\"\n          },\n" +
			"          {\n            \"functionCall\": {\n              \"name\": \"get_weather\",\n              \"args\": {\n                \"city\": \"Paris\"\n              }\n            }\n          }\n        ],\n        \"role\": \"model\"\n      },\n      \"finishReason\": \"STOP\"\n    }\n  ],\n" +
			"  \"usageMetadata\": {\n    \"promptTokenCount\": 10,\n    \"candidatesTokenCount\": 20,\n    \"totalTokenCount\": 67,\n    \"cachedContentTokenCount\": 4,\n    \"toolUsePromptTokenCount\": 7,\n" +
			"    \"promptTokensDetails\": [\n      {\n        \"modality\": \"TEXT\",\n        \"tokenCount\": 10\n      }\n    ],\n    \"thoughtsTokenCount\": 30\n  },\n  \"modelVersion\": \"gemini-3.5-flash\"\n}\n",
		want:  llm.Usage{Input: 17, Cached: 4, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, whole, thoughts among candidates", api: dialect.Generate,
		body:  `{"candidates":[{"content":{"parts":[{"text":"Warm"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":60}}`,
		want:  llm.Usage{Input: 10, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, whole, thoughts among candidates, and a tool", api: dialect.Generate,
		body:  `{"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":5,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":65}}`,
		want:  llm.Usage{Input: 15, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, blocked prompt", api: dialect.Generate,
		body: `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
		want: llm.Usage{Input: 10, Exact: true},
	},
	{
		name: "generate, events", api: dialect.Generate,
		body: strings.ReplaceAll(sse(`{"candidates": [{"content": {"parts": [{"text": "Once"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 7,"totalTokenCount": 7}}`,
			`{"candidates": [{"content": {"parts": [{"text": " upon a time"}]}}],"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 4,"thoughtsTokenCount": 20,"totalTokenCount": 31}}`,
			`{"candidates": [{"content": {"parts": [{"text": ""}]},"finishReason": "STOP"}],"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 5,"thoughtsTokenCount": 20,"totalTokenCount": 32}}`), "\n", "\r\n"),
		want:  llm.Usage{Input: 7, Output: 25, Reasoning: 20, Exact: true},
		truth: 25,
	},
	{
		name: "generate, an array", api: dialect.Generate,
		body: "[{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Once\"}]}}],\n  \"usageMetadata\": {\"promptTokenCount\": 7,\"candidatesTokenCount\": 1,\"totalTokenCount\": 8}\n}\n,\r\n" +
			"{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \" upon\"}]},\"finishReason\": \"STOP\"}],\n  \"usageMetadata\": {\"promptTokenCount\": 7,\"candidatesTokenCount\": 2,\"totalTokenCount\": 9}\n}\n]\n",
		want:  llm.Usage{Input: 7, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "generate, in a wrapper", api: dialect.Generate,
		body: sse(`{"response":{"candidates":[{"content":{"parts":[{"text":"Once"},{"executableCode":{"language":"PYTHON","code":"print(1)"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":6,"totalTokenCount":13}}}`,
			`{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}`),
		want:  llm.Usage{Input: 7, Output: 6, Exact: true},
		fault: "503",
		truth: 6,
	},
	{
		name: "parts: generate, by modality", api: dialect.Generate,
		body: `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"AAAA"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":500,"cachedContentTokenCount":100,` +
			`"candidatesTokenCount":90,"totalTokenCount":600,"thoughtsTokenCount":10,"promptTokensDetails":[{"modality":"TEXT","tokenCount":150},{"tokenCount":300,"modality":"AUDIO"},{"modality":"IMAGE","tokenCount":50}],` +
			`"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":80},{"modality":"TEXT","tokenCount":20}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":60},{"modality":"IMAGE","tokenCount":25}],"serviceTier":"FLEX"}}`,
		want:  llm.Usage{Input: 500, Cached: 100, InputAudio: 300, CachedAudio: 80, InputImage: 50, Output: 100, Reasoning: 10, OutputAudio: 60, OutputImage: 25, Tier: "flex", Exact: true},
		truth: 100,
	},
	{
		name: "parts: generate, Vertex's, streamed", api: dialect.Generate,
		body: sse(`{"candidates":[{"content":{"parts":[{"text":"Once"}]}}],"usageMetadata":{"promptTokenCount":7,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":5}],"trafficType":"ON_DEMAND"}}`,
			`{"candidates":[{"content":{"parts":[{"text":" more"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11,`+
				`"promptTokensDetails":[{"modality":"AUDIO","tokenCount":6},{"modality":"AUDIO"}],"trafficType":"ON_DEMAND_PRIORITY"}}`),
		want:  llm.Usage{Input: 9, InputAudio: 6, Output: 2, Tier: "priority", Exact: true},
		truth: 2,
	},
	{
		name: "parts: an interaction", api: dialect.Interactions,
		body: `{"id":"v1_x","object":"interaction","status":"completed","model":"gemini-3-flash","steps":[{"type":"thought","summary":[{"type":"text","text":"Hm"}]},{"type":"model_output","content":[{"type":"text","text":"Hi there"}]}],` +
			`"usage":{"total_input_tokens":20,"input_tokens_by_modality":[{"modality":"text","tokens":14},{"modality":"image","tokens":6}],"total_cached_tokens":4,"total_output_tokens":3,"total_thought_tokens":9,"total_tool_use_tokens":5,"total_tokens":37}}`,
		want:  llm.Usage{Input: 25, Cached: 4, InputImage: 6, Output: 12, Reasoning: 9, Exact: true},
		truth: 12,
	},
	{
		name: "parts: an interaction, streamed", api: dialect.Interactions,
		body: sse(`{"event_type":"interaction.created","interaction":{"id":"v1_x","status":"in_progress"}}`, `{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hi"}}`,
			`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":" there"}}`, `{"event_type":"interaction.completed","interaction":{"id":"v1_x","status":"completed","usage":{"total_input_tokens":7,"total_output_tokens":3,"total_tokens":10}}}`),
		want:  llm.Usage{Input: 7, Output: 3, Exact: true},
		truth: 3,
	},
	{
		name: "parts: an interaction that is cut off", api: dialect.Interactions,
		body:  sse(`{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"Hi"}}`, `{"event_type":"content.delta","index":0,"delta":{"type":"text","text":" there"}}`),
		want:  llm.Usage{Input: -1, Output: 2},
		truth: 2,
	},
}
