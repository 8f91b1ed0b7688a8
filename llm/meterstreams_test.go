package llm_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// meterStream is the body of a response, and what a meter must report about it.
type meterStream struct {
	name  string
	api   llm.API
	body  string
	want  llm.Usage
	fault string

	// truth is how many tokens were really generated.
	truth int
}

// sse returns a stream of events, each with a line of data.
func sse(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// named returns a stream of events with their types as names, as Anthropic's and those of OpenAI's
// responses have them.
func named(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, kind, _ := strings.Cut(d, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		b.WriteString("event: " + kind + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

// chunk returns a chunk of OpenAI's chat with these choices and usage.
func chunk(choices, usage string) string {
	return `{"id":"chatcmpl-BjDSx8aZ","object":"chat.completion.chunk","created":1794733200,"model":"gpt-6-luna",` +
		`"service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":` + choices + `,"usage":` + usage + `}`
}

// delta returns a chunk with a delta.
func delta(members string) string {
	return chunk(`[{"index":0,"delta":{`+members+`},"logprobs":null,"finish_reason":null}]`, "null")
}

var meterStreams = []meterStream{
	{
		name: "chat, whole", api: llm.Chat,
		body: `{"id":"chatcmpl-1","object":"chat.completion","created":1794733200,"model":"gpt-6-luna","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"Hello! How can I help you today?","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":1900,"completion_tokens":210,"total_tokens":2110,"prompt_tokens_details":{"cached_tokens":1792,"audio_tokens":0},` +
			`"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
		want:  llm.Usage{Input: 1900, Cached: 1792, Output: 210, Reasoning: 192, Exact: true, Tier: "standard"},
		truth: 210,
	},
	{
		name: "chat, whole, pretty and in reverse", api: llm.Chat,
		body: "\ufeff\r\n{\r\n  \"usage\" : {\r\n    \"total_tokens\" : 21 ,\r\n    \"completion_tokens\" : 12 ,\r\n    \"prompt_tokens\" : 9\r\n  } ,\r\n" +
			"  \"choices\" : [ { \"message\" : { \"content\" : \"Hello! How can I help you today?\" } } ]\r\n}\r\n",
		want:  llm.Usage{Input: 9, Output: 12, Exact: true},
		truth: 12,
	},
	{
		name: "chat, streamed", api: llm.Chat,
		body: sse(delta(`"role":"assistant","content":"","refusal":null`), delta(`"content":"Hello"`), delta(`"content":" \"world\"\n"`), delta(`"content":" \u4e16\u754c"`),
			chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, "null"),
			chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`),
			"[DONE]"),
		want:  llm.Usage{Input: 11, Output: 6, Exact: true, Tier: "standard"},
		truth: 6,
	},
	{
		name: "chat, streamed, usage not asked for", api: llm.Chat,
		body:  sse(delta(`"role":"assistant","content":""`), delta(`"content":"Hello"`), delta(`"content":" world"`), delta(`"content":" and everybody in it"`), "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 6, Tier: "standard"},
		truth: 7,
	},
	{
		name: "chat, streamed, tool calls in two answers", api: llm.Chat,
		body: sse(delta(`"role":"assistant","content":null`),
			delta(`"tool_calls":[{"index":0,"id":"call_DdmO9pD3xa9XTPNJ32zg2hcA","type":"function","function":{"name":"get_weather","arguments":""}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\""}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"city\":\"Zürich\"}"}}]`),
			chunk(`[{"index":1,"delta":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"tool_calls"}]`, "null"),
			chunk(`[]`, `{"prompt_tokens":80,"completion_tokens":17,"total_tokens":97}`), "[DONE]"),
		want:  llm.Usage{Input: 80, Output: 17, Exact: true, Tier: "standard"},
		truth: 17,
	},
	{
		name: "chat, streamed, reasoning under two names", api: llm.Chat,
		body:  sse(delta(`"reasoning":"Let me","reasoning_content":"Let me"`), delta(`"reasoning":" think","reasoning_content":" think"`), delta(`"content":"42"`), "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 3, Tier: "standard"},
		truth: 4,
	},
	{
		name: "chat, CR LF, comments, ids, a line of data in three", api: llm.Chat,
		body: ": OPENROUTER PROCESSING\r\n\r\n:\r\nid: 1\r\nretry: 10\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\r\ndata\r\ndata: \"usage\":\r\ndata:null}\r\n\r\n" +
			"datax: {\"usage\":{\"prompt_tokens\":1}}\r\n data: {\r\n\r\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\r\n\r\ndata: [DONE]\r\n\r\n",
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "chat, CR", api: llm.Chat,
		body:  strings.ReplaceAll(sse(delta(`"content":"Hi"`), chunk(`[]`, `{"prompt_tokens":3,"completion_tokens":2}`), "[DONE]"), "\n", "\r"),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "chat, garbage between events", api: llm.Chat,
		body: sse(delta(`"content":"Hi"`), `{"usage":{"prompt_tokens":99`, `}}} what?`, `{"usage":{"prompt_tokens":98},"x":"`, `<html>`, `"{"`, `7`, `{"usag\u006`, `{"usag\`,
			chunk(`[]`, `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`)),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "chat, lines that end in a number or a string", api: llm.Chat,
		body: sse("{\"usage\":{\"prompt_tokens\":9\ndata:9}}", "{\"usage\":{\"prompt_tokens\":8},\"x\":\"a\ndata:b\"}", "{\"usage\":{\"prompt_tokens\":7},\"x\":[\"a\ndata\ndata:b\"]}") +
			sse("{\"usage\":{\"prompt_tokens\":\ndata\ndata:3\ndata:,\"completion_tokens\":2\ndata: }}"),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "chat, Groq", api: llm.Chat,
		body: sse(delta(`"content":"Fast"`), `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+
			`"x_groq":{"id":"req_1","usage":{"queue_time":0.061,"prompt_tokens":46,"prompt_time":0.001,"completion_tokens":3,"completion_time":0.02,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":32}}}}`, "[DONE]"),
		want:  llm.Usage{Input: 46, Cached: 32, Output: 3, Exact: true, Tier: "standard"},
		truth: 3,
	},
	{
		name: "chat, Gemini's own, usage in every chunk, thoughts in the total alone", api: llm.Chat,
		body: sse(`{"choices":[{"delta":{"content":"One"},"index":0}],"usage":{"completion_tokens":1,"prompt_tokens":8,"total_tokens":59}}`,
			`{"choices":[{"delta":{"content":" two three"},"index":0,"finish_reason":"stop"}],"usage":{"completion_tokens":3,"prompt_tokens":8,"total_tokens":61}}`, "[DONE]"),
		want:  llm.Usage{Input: 8, Output: 53, Exact: true},
		truth: 53,
	},
	{
		name: "chat, DeepSeek", api: llm.Chat,
		body: sse(delta(`"content":null,"reasoning_content":"Hmm"`), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":70,"completion_tokens":40,"total_tokens":110,"completion_tokens_details":{"reasoning_tokens":31},"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":6}}`, "[DONE]"),
		want:  llm.Usage{Input: 70, Cached: 64, Output: 40, Reasoning: 31, Exact: true, Tier: "standard"},
		truth: 40,
	},
	{
		name: "chat, OpenRouter's error in a stream", api: llm.Chat,
		body: sse(delta(`"content":"Hel"`), `{"id":"gen-1","object":"chat.completion.chunk","error":{"code":429,"message":"Rate limited","metadata":{"code":"x"}},`+
			`"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
		want:  llm.Usage{Input: -1, Output: 1, Tier: "standard"},
		fault: "429",
		truth: 5,
	},
	{
		name: "chat, OpenAI's error in a stream", api: llm.Chat,
		body:  sse(delta(`"content":"Hel"`), `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`, "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 1, Tier: "standard"},
		fault: "server_error",
		truth: 5,
	},
	{
		name: "chat, text after the usage", api: llm.Chat,
		body:  sse(`{"choices":[{"delta":{"content":"One"}}],"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9}}`, delta(`"content":" two"`), delta(`"content":" three"`)),
		want:  llm.Usage{Input: 8, Output: 3, Tier: "standard"},
		truth: 3,
	},
	{
		name: "completions, streamed", api: llm.Completions,
		body: sse(`{"id":"cmpl-1","object":"text_completion","choices":[{"text":"This","index":0,"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"id":"cmpl-1","choices":[{"text":" is","index":0}],"usage":null}`, `{"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, "[DONE]"),
		want:  llm.Usage{Input: 5, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "embeddings", api: llm.Embeddings,
		body: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.0023064255,-0.009327292,` + strings.Repeat("-0.0028842222,", 20) +
			`1e-05]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		want: llm.Usage{Input: 8, Exact: true},
	},
	{
		name: "embeddings, base64", api: llm.Embeddings,
		body: `{"object":"list","data":[{"embedding":"AAAAPw8="}],"usage":{"prompt_tokens":8}}`,
		want: llm.Usage{Input: 8, Exact: true},
	},
	{
		name: "responses, whole", api: llm.Responses,
		body: `{"id":"resp_67","object":"response","status":"completed","error":null,"incomplete_details":null,"instructions":"Be {brief","model":"gpt-6.1-sol","output":[` +
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Thought"}]},` +
			`{"type":"message","id":"msg_67","status":"completed","role":"assistant","content":[{"type":"output_text","text":"In a peaceful grove beneath a silver moon","annotations":[]}]},` +
			`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Paris\"}"}],"text":{"format":{"type":"text"}},"tools":[],` +
			`"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":16},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123},"user":null}`,
		want:  llm.Usage{Input: 36, Cached: 16, Output: 87, Reasoning: 64, Exact: true},
		truth: 87,
	},
	{
		name: "responses, streamed", api: llm.Responses,
		body: named(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_67","status":"in_progress","error":null,"output":[],"usage":null}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_67","type":"message","content":[]}}`,
			`{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_67","delta":"Hi","logprobs":[],"obfuscation":"qF3"}`,
			`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_67","delta":" there","obfuscation":"a"}`,
			`{"type":"response.output_text.done","sequence_number":4,"item_id":"msg_67","text":"Hi there"}`,
			`{"type":"response.function_call_arguments.delta","sequence_number":5,"delta":"{\"a\":1}"}`,
			`{"type":"response.completed","sequence_number":6,"response":{"id":"resp_67","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi there"}]}],`+
				`"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":0},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":48}}}`),
		want:  llm.Usage{Input: 37, Output: 11, Reasoning: 3, Exact: true},
		truth: 11,
	},
	{
		name: "responses, sound is no text", api: llm.Responses,
		body:  named(`{"type":"response.audio.delta","delta":"` + strings.Repeat("UklGR", 50) + `"}`),
		want:  llm.Usage{Input: -1},
		truth: 9,
	},
	{
		name: "responses, failed", api: llm.Responses,
		body: named(`{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"The model failed"},"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}`),
		want:  llm.Usage{Input: 5, Output: 2, Exact: true},
		fault: "server_error",
		truth: 2,
	},
	{
		name: "responses, error", api: llm.Responses,
		body:  named(`{"type":"response.output_text.delta","delta":"Hi"}`, `{"type":"error","code":"rate_limit_exceeded","message":"Slow down","param":null,"sequence_number":9}`),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "rate_limit_exceeded",
		truth: 3,
	},
	{
		name: "messages, whole", api: llm.Messages,
		body: `{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"thinking","thinking":"The user says hi","signature":"Er` + strings.Repeat("x", 300) + `"},` +
			`{"type":"text","text":"Hi! My name is Claude."},{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"city":"San Francisco, CA","days":[1,2,{"unit":"C"}]}}],` +
			`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":95,"cache_creation_input_tokens":188,"cache_read_input_tokens":1800,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":188,"ephemeral_1h_input_tokens":0},"output_tokens":70,"service_tier":"standard","server_tool_use":{"web_search_requests":0}}}`,
		want:  llm.Usage{Input: 2083, Cached: 1800, CacheWrite: 188, Output: 70, Exact: true},
		truth: 70,
	},
	{
		name: "messages, streamed", api: llm.Messages,
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
		name: "messages, overloaded in the middle", api: llm.Messages,
		body: named(`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":4}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`),
		want:  llm.Usage{Input: 25, Output: 4},
		fault: "overloaded_error",
		truth: 6,
	},
	{
		name: "generate, whole, thoughts beside candidates", api: llm.Generate,
		body: "{\n  \"candidates\": [\n    {\n      \"content\": {\n        \"parts\": [\n          {\n            \"text\": \"It is \\u003cb\\u003ewarm\\u003c/b\\u003e\",\n            \"thoughtSignature\": \"AbCd\"\n          },\n" +
			"          {\n            \"functionCall\": {\n              \"name\": \"get_weather\",\n              \"args\": {\n                \"city\": \"Paris\"\n              }\n            }\n          }\n        ],\n        \"role\": \"model\"\n      },\n      \"finishReason\": \"STOP\"\n    }\n  ],\n" +
			"  \"usageMetadata\": {\n    \"promptTokenCount\": 10,\n    \"candidatesTokenCount\": 20,\n    \"totalTokenCount\": 67,\n    \"cachedContentTokenCount\": 4,\n    \"toolUsePromptTokenCount\": 7,\n" +
			"    \"promptTokensDetails\": [\n      {\n        \"modality\": \"TEXT\",\n        \"tokenCount\": 10\n      }\n    ],\n    \"thoughtsTokenCount\": 30\n  },\n  \"modelVersion\": \"gemini-3.5-flash\"\n}\n",
		want:  llm.Usage{Input: 17, Cached: 4, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, whole, thoughts among candidates", api: llm.Generate,
		body:  `{"candidates":[{"content":{"parts":[{"text":"Warm"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":60}}`,
		want:  llm.Usage{Input: 10, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, whole, thoughts among candidates, and a tool", api: llm.Generate,
		body:  `{"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":5,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":65}}`,
		want:  llm.Usage{Input: 15, Output: 50, Reasoning: 30, Exact: true},
		truth: 50,
	},
	{
		name: "generate, blocked prompt", api: llm.Generate,
		body: `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
		want: llm.Usage{Input: 10, Exact: true},
	},
	{
		name: "generate, events", api: llm.Generate,
		body: strings.ReplaceAll(sse(`{"candidates": [{"content": {"parts": [{"text": "Once"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 7,"totalTokenCount": 7}}`,
			`{"candidates": [{"content": {"parts": [{"text": " upon a time"}]}}],"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 4,"thoughtsTokenCount": 20,"totalTokenCount": 31}}`,
			`{"candidates": [{"content": {"parts": [{"text": ""}]},"finishReason": "STOP"}],"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 5,"thoughtsTokenCount": 20,"totalTokenCount": 32}}`), "\n", "\r\n"),
		want:  llm.Usage{Input: 7, Output: 25, Reasoning: 20, Exact: true},
		truth: 25,
	},
	{
		name: "generate, an array", api: llm.Generate,
		body: "[{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Once\"}]}}],\n  \"usageMetadata\": {\"promptTokenCount\": 7,\"candidatesTokenCount\": 1,\"totalTokenCount\": 8}\n}\n,\r\n" +
			"{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \" upon\"}]},\"finishReason\": \"STOP\"}],\n  \"usageMetadata\": {\"promptTokenCount\": 7,\"candidatesTokenCount\": 2,\"totalTokenCount\": 9}\n}\n]\n",
		want:  llm.Usage{Input: 7, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "generate, in a wrapper", api: llm.Generate,
		body: sse(`{"response":{"candidates":[{"content":{"parts":[{"text":"Once"},{"executableCode":{"language":"PYTHON","code":"print(1)"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":6,"totalTokenCount":13}}}`,
			`{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}`),
		want:  llm.Usage{Input: 7, Output: 6, Exact: true},
		fault: "503",
		truth: 6,
	},
	{
		name: "ollama, chat", api: llm.OllamaChat,
		body: `{"model":"qwen3","created_at":"2026-11-15T10:00:00Z","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":"The"},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Toronto"}}}]},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":342546000,"eval_count":28,"eval_duration":4535599000}` + "\n",
		want:  llm.Usage{Input: 26, Output: 28, Exact: true},
		truth: 28,
	},
	{
		name: "ollama, generate, the prompt is cached", api: llm.OllamaGenerate,
		body: `{"model":"qwen3","response":"The","done":false}` + "\n" + `{"model":"qwen3","response":" sky","thinking":"","done":false}` + "\n" +
			`{"model":"qwen3","response":"","done":true,"context":[1,2,3],"eval_count":2}`,
		want:  llm.Usage{Input: -1, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "ollama, error", api: llm.OllamaGenerate,
		body:  `{"model":"qwen3","response":"The","done":false}` + "\n" + `{"error":"an error was encountered while running the model"}` + "\n",
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "error",
		truth: 4,
	},
	{
		name: "names and codes with escapes", api: llm.Chat,
		body: sse(`{"us\u0061ge":{"prompt\u005Ftokens":4,"\u0063ompletion_tokens":2},"\u0065rror":{"code":"s\u0065rver\/error\u00e9\n"}}`,
			`{"usage\u0000":{"prompt_tokens":9},"usage`+strings.Repeat("x", 200)+`":{"prompt_tokens":9},"\ud83d\ude00":1,"usag\\u0065":{"prompt_tokens":9}}`),
		want:  llm.Usage{Input: 4, Output: 2, Exact: true},
		fault: "server/erroré\n",
		truth: 2,
	},
	{
		name: "values of other kinds", api: llm.Chat,
		body: sse(`{"usage":{"prompt_tokens":4,"completion_tokens":2}}`, `{"usage":"x","choices":7,"error":null,"delta":[true],"message":[[{"usage":{"input_tokens":7}}]]}`,
			`{"usage":[],"error":"","response":{"usage":false,"error":null}}`, `{"usage":{"prompt_tokens":{"prompt_tokens":1},"completion_tokens":"9","prompt_tokens_details":null}}`,
			`{"choices":[{"delta":{"usage":{"prompt_tokens":9}},"message":{"usage":{"input_tokens":9,"output_tokens":9}}}]}`,
			`{"other":{"usage":{"prompt_tokens":7}},"data":[{"usage":{"prompt_tokens":7}}]}`),
		want:  llm.Usage{Input: 4, Output: 2, Exact: true},
		truth: 2,
	},
	{name: "nothing", api: llm.Chat, want: llm.Usage{Input: -1}},
	{name: "no JSON", api: llm.Chat, body: "<html>{\"usage\":{\"prompt_tokens\":1}}</html>", want: llm.Usage{Input: -1}},
	{
		name: "Cohere, whole", api: llm.CohereChat,
		body: `{"id":"c14c80c3","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"LLMs stand for Large Language Models."}]},` +
			`"usage":{"billed_units":{"input_tokens":5,"output_tokens":418},"tokens":{"input_tokens":71,"output_tokens":420},"cached_tokens":64}}`,
		want:  llm.Usage{Input: 71, Cached: 64, Output: 420, Exact: true},
		truth: 420,
	},
	{
		name: "Cohere, streamed", api: llm.CohereChat,
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
		name: "Cohere, a stream that fails", api: llm.CohereChat,
		body: named(
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello"}}}}`,
			`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"the model broke"}}`,
		),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "error",
		truth: 1,
	},
	{
		name: "Cohere's first version, whole", api: llm.CohereChat,
		body: `{"text":"Hello there","generation_id":"g","chat_history":[{"role":"USER","message":"Hi"},{"role":"CHATBOT","message":"Hello there"}],` +
			`"finish_reason":"COMPLETE","meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":5,"output_tokens":3},"tokens":{"input_tokens":70,"output_tokens":4}}}`,
		want:  llm.Usage{Input: 70, Output: 4, Exact: true},
		truth: 4,
	},
	{
		name: "Cohere's first version, streamed", api: llm.CohereChat,
		body: `{"is_finished":false,"event_type":"stream-start","generation_id":"g"}` + "\n" +
			`{"is_finished":false,"event_type":"text-generation","text":"Hello"}` + "\n" +
			`{"is_finished":false,"event_type":"text-generation","text":" there"}` + "\n" +
			`{"is_finished":true,"event_type":"stream-end","response":{"text":"Hello there","meta":{"billed_units":{"input_tokens":5,"output_tokens":3}}},"finish_reason":"COMPLETE"}` + "\n",
		want:  llm.Usage{Input: 5, Output: 3, Exact: true},
		truth: 3,
	},
	{
		name: "Cohere's embeddings", api: llm.CohereEmbed,
		body: `{"id":"e","embeddings":{"float":[[0.1,0.2]]},"texts":["{\"meta\":{\"billed_units\":{\"input_tokens\":1}}}"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":9}},"response_type":"embeddings_by_type"}`,
		want: llm.Usage{Input: 9, Exact: true},
	},
	{
		name: "a rank, which tells no tokens", api: llm.CohereRerank,
		body: `{"id":"r","results":[{"index":1,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}`,
		want: llm.Usage{Input: -1},
	},
	{
		name: "Cohere's members at another's", api: llm.Chat,
		body: `{"meta":{"billed_units":{"input_tokens":1,"output_tokens":1}},"text":"x","delta":{"usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}}`,
		want: llm.Usage{Input: -1},
	},
	{
		name: "Converse, whole", api: llm.Converse,
		body: `{"metrics":{"latencyMs":816},"output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"text":"Hm","signature":"EqQB"}}},{"text":"Hello there"},` +
			`{"toolUse":{"toolUseId":"t","name":"look","input":{"city":"Rome"}}}],"role":"assistant"}},"stopReason":"end_turn",` +
			`"usage":{"cacheReadInputTokens":40,"cacheWriteInputTokens":2,"inputTokens":30,"outputTokens":628,"totalTokens":700}}`,
		want:  llm.Usage{Input: 72, Cached: 40, CacheWrite: 2, Output: 628, Exact: true},
		truth: 628,
	},
	{
		name: "Converse, streamed", api: llm.Converse,
		body: converseFrames(
			"messageStart", `{"p":"abcdefgh","role":"assistant"}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}},"p":"abcd"}`,
			"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Hello"},"p":"abcdefghijklmnop"}`,
			"contentBlockStart", `{"contentBlockIndex":2,"p":"ab","start":{"toolUse":{"name":"look","toolUseId":"t"}}}`,
			"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\""}},"p":"abc"}`,
			"messageStop", `{"p":"a","stopReason":"end_turn"}`,
			"metadata", `{"metrics":{"latencyMs":500},"p":"ab","usage":{"inputTokens":125,"outputTokens":60,"totalTokens":185}}`,
		),
		want:  llm.Usage{Input: 125, Output: 60, Exact: true},
		truth: 60,
	},
	{
		name: "Converse, a stream that fails", api: llm.Converse,
		body: converseFrames("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Hello"}}`) +
			frame(`{"message":"Too many tokens, please wait before trying again."}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "throttlingException",
		truth: 1,
	},
	{
		name: "frames that are none", api: llm.Converse,
		body: "\x00\x00\x00\x30\x00\x00\x00\x01garbage" + converseFrames("metadata", `{"usage":{"inputTokens":125,"outputTokens":60}}`),
		want: llm.Usage{Input: -1},
	},
	{
		name: "Invoke of Anthropic's, streamed", api: llm.Invoke,
		body: invokeFrames(
			`{"type":"message_start","message":{"id":"msg_bdrk_1","role":"assistant","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":3,"output_tokens":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" wörld, how are you today?"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}`,
			`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":12,"invocationLatency":1,"firstByteLatency":1,"cacheReadInputTokenCount":3,"cacheWriteInputTokenCount":0}}`,
		),
		want:  llm.Usage{Input: 12, Cached: 3, Output: 12, Exact: true},
		truth: 12,
	},
	{
		name: "Invoke of Nova's, streamed", api: llm.Invoke,
		body: invokeFrames(
			`{"messageStart":{"role":"assistant"}}`,
			`{"contentBlockDelta":{"delta":{"text":"Hello"},"contentBlockIndex":0}}`,
			`{"metadata":{"usage":{"inputTokens":4,"outputTokens":7,"cacheReadInputTokenCount":0}},"amazon-bedrock-invocationMetrics":{"inputTokenCount":4,"outputTokenCount":7}}`,
		),
		want:  llm.Usage{Input: 4, Output: 7, Exact: true},
		truth: 7,
	},
	{
		name: "Invoke of Titan's, cut off", api: llm.Invoke,
		body: invokeFrames(`{"outputText":"Hello","index":0}`, `{"outputText":" there","index":0}`),
		want: llm.Usage{Input: -1, Output: 2}, truth: 2,
	},
}

// frame returns a message in AWS's event stream format. The headers are given as pairs.
func frame(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(h, 7) // a string
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	f = binary.BigEndian.AppendUint32(f, uint32(len(h)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, h...), payload...)
	return string(binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f)))
}

// converseFrames returns a Converse stream, from types of events and their payloads.
func converseFrames(events ...string) string {
	var b strings.Builder
	for i := 0; i < len(events); i += 2 {
		b.WriteString(frame(events[i+1], ":event-type", events[i], ":content-type", "application/json", ":message-type", "event"))
	}
	return b.String()
}

// invokeFrames returns an Invoke stream, from the model's own events.
func invokeFrames(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		payload := `{"bytes":"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(e)), "/", `\/`) + `","p":"abcdef"}`
		b.WriteString(frame(payload, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"))
	}
	return b.String()
}
