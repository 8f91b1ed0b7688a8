package llm_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, partStreams...) }

// partStreams are responses that report every part of their usage that has a price of its own, in
// the format of each provider.
var partStreams = []meterStream{
	{
		name: "parts: chat with sound, priority", api: llm.Chat,
		body: `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"UklGRg==","transcript":"Hi"}},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":300,"completion_tokens":150,"total_tokens":450,"prompt_tokens_details":{"cached_tokens":64,"text_tokens":80,"audio_tokens":200,"image_tokens":20},` +
			`"completion_tokens_details":{"reasoning_tokens":10,"audio_tokens":120,"text_tokens":20,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"priority"}`,
		want:  llm.Usage{Input: 300, Cached: 64, InputAudio: 200, InputImage: 20, Output: 150, Reasoning: 10, OutputAudio: 120, Tier: "priority", Exact: true},
		truth: 150,
	},
	{
		name: "parts: chat, streamed, the tier in every chunk", api: llm.Chat,
		body: strings.ReplaceAll(sse(delta(`"content":"Hello"`), delta(`"content":" world"`), delta(`"content":" and"`), delta(`"content":" all"`), delta(`"content":" others"`),
			chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":6}}`), "[DONE]"), `"default"`, `"flex"`),
		want:  llm.Usage{Input: 11, Cached: 4, InputAudio: 6, Output: 6, Tier: "flex", Exact: true},
		truth: 6,
	},
	{
		name: "parts: responses, streamed, the last tier counts", api: llm.Responses,
		body: named(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","service_tier":"auto","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","service_tier":"flex","usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":40,"image_tokens":30},`+
				`"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":99}}}`),
		want:  llm.Usage{Input: 90, Cached: 40, InputImage: 30, Output: 9, Reasoning: 4, Tier: "flex", Exact: true},
		truth: 9,
	},
	{
		name: "parts: an image", api: llm.Responses,
		body: `{"created":1713833628,"data":[{"b64_json":"aGk="}],"usage":{"total_tokens":330,"input_tokens":50,"output_tokens":280,` +
			`"input_tokens_details":{"text_tokens":10,"image_tokens":40},"output_tokens_details":{"image_tokens":272,"text_tokens":8}}}`,
		want:  llm.Usage{Input: 50, InputImage: 40, Output: 280, OutputImage: 272, Exact: true},
		truth: 280,
	},
	{
		name: "parts: cached sound", api: llm.Responses,
		body: `{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"audio_tokens":80,"cached_tokens_details":{"text_tokens":10,"audio_tokens":50}},` +
			`"output_tokens":5,"output_tokens_details":{"audio_tokens":3}}}`,
		want:  llm.Usage{Input: 100, Cached: 60, InputAudio: 80, CachedAudio: 50, Output: 5, OutputAudio: 3, Exact: true},
		truth: 5,
	},
	{
		name: "parts: messages, written for an hour, in a batch", api: llm.Messages,
		body: `{"type":"message","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":700,"cache_read_input_tokens":50,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":456,"ephemeral_1h_input_tokens":244},"output_tokens":3,"service_tier":"batch"}}`,
		want:  llm.Usage{Input: 760, Cached: 50, CacheWrite: 700, CacheWriteHour: 244, Output: 3, Tier: "batch", Exact: true},
		truth: 3,
	},
	{
		name: "parts: messages, streamed", api: llm.Messages,
		body: named(`{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":700,"cache_read_input_tokens":50,`+
			`"cache_creation":{"ephemeral_5m_input_tokens":456,"ephemeral_1h_input_tokens":244},"output_tokens":1,"service_tier":"priority"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`, `{"type":"message_stop"}`),
		want:  llm.Usage{Input: 760, Cached: 50, CacheWrite: 700, CacheWriteHour: 244, Output: 3, Tier: "priority", Exact: true},
		truth: 3,
	},
	{
		name: "parts: generate, by modality", api: llm.Generate,
		body: `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"AAAA"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":500,"cachedContentTokenCount":100,` +
			`"candidatesTokenCount":90,"totalTokenCount":600,"thoughtsTokenCount":10,"promptTokensDetails":[{"modality":"TEXT","tokenCount":150},{"tokenCount":300,"modality":"AUDIO"},{"modality":"IMAGE","tokenCount":50}],` +
			`"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":80},{"modality":"TEXT","tokenCount":20}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":60},{"modality":"IMAGE","tokenCount":25}],"serviceTier":"FLEX"}}`,
		want:  llm.Usage{Input: 500, Cached: 100, InputAudio: 300, CachedAudio: 80, InputImage: 50, Output: 100, Reasoning: 10, OutputAudio: 60, OutputImage: 25, Tier: "flex", Exact: true},
		truth: 100,
	},
	{
		name: "parts: generate, Vertex's, streamed", api: llm.Generate,
		body: sse(`{"candidates":[{"content":{"parts":[{"text":"Once"}]}}],"usageMetadata":{"promptTokenCount":7,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":5}],"trafficType":"ON_DEMAND"}}`,
			`{"candidates":[{"content":{"parts":[{"text":" more"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11,`+
				`"promptTokensDetails":[{"modality":"AUDIO","tokenCount":6},{"modality":"AUDIO"}],"trafficType":"ON_DEMAND_PRIORITY"}}`),
		want:  llm.Usage{Input: 9, InputAudio: 6, Output: 2, Tier: "priority", Exact: true},
		truth: 2,
	},
	{
		name: "parts: OpenRouter, with its charge", api: llm.Chat,
		body: sse(delta(`"content":"Hi"`), chunk(`[]`, `{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00014495,"is_byok":false,`+
			`"cost_details":{"upstream_inference_cost":0.00014495,"upstream_inference_prompt_cost":0.0001},"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":100,"audio_tokens":0}}`), "[DONE]"),
		want:  llm.Usage{Input: 194, Cached: 10, CacheWrite: 100, Output: 2, Cost: 144_950, CostTold: true, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "parts: OpenRouter, with the caller's own key", api: llm.Chat,
		body: `{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.95,"is_byok":true,` +
			`"cost_details":{"upstream_inference_cost":19}}}`,
		want:  llm.Usage{Input: 194, Output: 2, Cost: 19_950_000_000, CostTold: true, Exact: true},
		truth: 2,
	},
	{
		name: "parts: Converse, caches and a tier", api: llm.Converse,
		body: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":30,"outputTokens":2,"totalTokens":832,"cacheReadInputTokens":500,` +
			`"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"1h","inputTokens":200},{"ttl":"5m","inputTokens":100}]},"serviceTier":{"type":"priority"}}`,
		want:  llm.Usage{Input: 830, Cached: 500, CacheWrite: 300, CacheWriteHour: 200, Output: 2, Tier: "priority", Exact: true},
		truth: 2,
	},
	{
		name: "parts: Anthropic's speed", api: llm.Messages,
		body:  `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":2,"speed":"fast","service_tier":"standard"}}`,
		want:  llm.Usage{Input: 3, Output: 2, Tier: "fast", Exact: true},
		truth: 2,
	},
	{
		name: "parts: Anthropic's speed, the usual one", api: llm.Messages,
		body: sse(`{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1,"service_tier":"standard","speed":"standard"}}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"message_delta","usage":{"output_tokens":2}}`),
		want:  llm.Usage{Input: 3, Output: 2, Tier: "standard", Exact: true},
		truth: 2,
	},
	{
		name: "parts: Anthropic's tier, which says nothing about the speed", api: llm.Messages,
		body:  `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":2,"service_tier":"standard"}}`,
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "parts: an interaction", api: llm.Interactions,
		body: `{"id":"v1_x","object":"interaction","status":"completed","model":"gemini-3-flash","steps":[{"type":"thought","summary":[{"type":"text","text":"Hm"}]},{"type":"model_output","content":[{"type":"text","text":"Hi there"}]}],` +
			`"usage":{"total_input_tokens":20,"input_tokens_by_modality":[{"modality":"text","tokens":14},{"modality":"image","tokens":6}],"total_cached_tokens":4,"total_output_tokens":3,"total_thought_tokens":9,"total_tool_use_tokens":5,"total_tokens":37}}`,
		want:  llm.Usage{Input: 25, Cached: 4, InputImage: 6, Output: 12, Reasoning: 9, Exact: true},
		truth: 12,
	},
	{
		name: "parts: an interaction, streamed", api: llm.Interactions,
		body: sse(`{"event_type":"interaction.created","interaction":{"id":"v1_x","status":"in_progress"}}`, `{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hi"}}`,
			`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":" there"}}`, `{"event_type":"interaction.completed","interaction":{"id":"v1_x","status":"completed","usage":{"total_input_tokens":7,"total_output_tokens":3,"total_tokens":10}}}`),
		want:  llm.Usage{Input: 7, Output: 3, Exact: true},
		truth: 3,
	},
	{
		name: "parts: an interaction that is cut off", api: llm.Interactions,
		body:  sse(`{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"Hi"}}`, `{"event_type":"content.delta","index":0,"delta":{"type":"text","text":" there"}}`),
		want:  llm.Usage{Input: -1, Output: 2},
		truth: 2,
	},
	{
		name: "parts: a conversation, streamed", api: llm.Conversations,
		body: sse(`{"type":"conversation.response.started","conversation_id":"c"}`, `{"type":"message.output.delta","output_index":0,"id":"m","content":"Hi"}`,
			`{"type":"message.output.delta","output_index":0,"id":"m","content":[{"type":"text","text":" there"}]}`,
			`{"type":"conversation.response.done","usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":52,"connector_tokens":40}}`),
		want:  llm.Usage{Input: 9, Output: 43, Exact: true},
		truth: 43,
	},
	{
		name: "parts: larger than the whole", api: llm.Chat,
		body: `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":900,"audio_tokens":7,"image_tokens":900},` +
			`"cache_creation":{"ephemeral_1h_input_tokens":900},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":900,"image_tokens":900}}}`,
		want:  llm.Usage{Input: 10, Cached: 8, CacheWrite: 2, CacheWriteHour: 2, InputAudio: 7, CachedAudio: 5, InputImage: 3, Output: 5, Reasoning: 2, OutputAudio: 3, Exact: true},
		truth: 5,
	},
	{
		name: "parts: nonsense", api: llm.Chat,
		body: `{"service_tier":null,"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":-0.5,"cost_details":{"upstream_inference_cost":null},"is_byok":1,"service_tier":"",` +
			`"prompt_tokens_details":{"audio_tokens":-1,"image_tokens":2.5},"completion_tokens_details":{"audio_tokens":1e99,"image_tokens":"7"}}}`,
		want:  llm.Usage{Input: 10, Output: 5, Exact: true},
		truth: 5,
	},
	{
		name: "parts: a cost that is an object", api: llm.Chat,
		body:  `{"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":{"total_cost":0.5}}}`,
		want:  llm.Usage{Input: 10, Output: 5, Exact: true},
		truth: 5,
	},
}

// costOf returns the cost that a meter reads.
func costOf(number string) (int64, bool) {
	u := meter(llm.Chat, nil, `{"usage":{"cost":`+number+`}}`).Usage
	return u.Cost, u.CostTold
}

func TestMeterCost(t *testing.T) {
	for number, want := range map[string]int64{
		"0": 0, "0.0": 0, "1": 1e9, "0.95": 950_000_000, "1e-9": 1, "1E-10": 1, "0.0000000011": 2, "1.000000000": 1e9, "12.5e+1": 125e9, "0e60": 0,
		"0.000014000000000000001": 14_001, "9007199.254740991": 1<<53 - 1, "1e-60": 1, "0.00": 0,
		"9007199.2547409911": -1, "9007199.254740992": -1, "1e7": -1, "1e60": -1, "1e61": -1, "0e1000": 0, "0e1001": -1, "1e-1000": 1, "1e999": -1, "-1": -1, "-0.1": -1, "1e": -1, "1e1e1": -1, "1.2.3": -1, "NaN": -1,
		"Infinity": -1, "0x10": -1, ".": -1, "e5": -1, "null": -1, "true": -1, `"0.5"`: -1, "1_000": -1, "1e-1_0": -1, "0." + strings.Repeat("0", 70) + "1": -1,
	} {
		if got, told := costOf(number); told != (want >= 0) || told && got != want {
			t.Errorf("%s is read as %d, %t, want %d", number, got, told, want)
		}
	}
}

// Every number that JSON allows is read as package big reads it.
func TestMeterCostProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`(0|[1-9][0-9]{0,12})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "number")
		r, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("%s is no number", number)
		}
		want, fits := naiveBillionths(r)
		if got, told := costOf(number); told != fits || told && got != want {
			t.Fatalf("%s is read as %d, %t, want %d, %t", number, got, told, want, fits)
		}
	})
}
