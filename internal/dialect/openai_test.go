package dialect_test

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, openaiStreams...) }

var openaiStreams = []meterStream{
	{
		name: "chat, whole", api: dialect.Chat,
		body: `{"id":"chatcmpl-1","object":"chat.completion","created":1794733200,"model":"gpt-6-luna","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"Hello! How can I help you today?","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":1900,"completion_tokens":210,"total_tokens":2110,"prompt_tokens_details":{"cached_tokens":1792,"audio_tokens":0},` +
			`"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
		want:  llm.Usage{Input: 1900, Cached: 1792, Output: 210, Reasoning: 192, Exact: true, Tier: "standard"},
		truth: 210,
	},
	{
		name: "chat, whole, pretty and in reverse", api: dialect.Chat,
		body: "\ufeff\r\n{\r\n  \"usage\" : {\r\n    \"total_tokens\" : 21 ,\r\n    \"completion_tokens\" : 12 ,\r\n    \"prompt_tokens\" : 9\r\n  } ,\r\n" +
			"  \"choices\" : [ { \"message\" : { \"content\" : \"Hello! How can I help you today?\" } } ]\r\n}\r\n",
		want:  llm.Usage{Input: 9, Output: 12, Exact: true},
		truth: 12,
	},
	{
		name: "chat, streamed", api: dialect.Chat,
		body: sse(delta(`"role":"assistant","content":"","refusal":null`), delta(`"content":"Hello"`), delta(`"content":" \"world\"\n"`), delta(`"content":" \u4e16\u754c"`),
			chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, "null"),
			chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`),
			"[DONE]"),
		want:  llm.Usage{Input: 11, Output: 6, Exact: true, Tier: "standard"},
		truth: 6,
	},
	{
		name: "chat, streamed, usage not asked for", api: dialect.Chat,
		body:  sse(delta(`"role":"assistant","content":""`), delta(`"content":"Hello"`), delta(`"content":" world"`), delta(`"content":" and everybody in it"`), "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 6, Tier: "standard"},
		truth: 7,
	},
	{
		name: "chat, streamed, tool calls in two answers", api: dialect.Chat,
		body: sse(delta(`"role":"assistant","content":null`),
			delta(`"tool_calls":[{"index":0,"id":"call_DdmO9pD3xa9XTPNJ32zg2hcA","type":"function","function":{"name":"get_weather","arguments":""}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\""}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"city\":\"Zürich\"}"}}]`),
			chunk(`[{"index":1,"delta":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"tool_calls"}]`, "null"),
			chunk(`[]`, `{"prompt_tokens":80,"completion_tokens":17,"total_tokens":97}`), "[DONE]"),
		want:  llm.Usage{Input: 80, Output: 17, Exact: true, Tier: "standard"},
		truth: 17,
	},
	{
		name: "chat, streamed, reasoning under two names", api: dialect.Chat,
		body:  sse(delta(`"reasoning":"Let me","reasoning_content":"Let me"`), delta(`"reasoning":" think","reasoning_content":" think"`), delta(`"content":"42"`), "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 3, Tier: "standard"},
		truth: 4,
	},
	{
		name: "chat, CR LF, comments, ids, a line of data in three", api: dialect.Chat,
		body: ": OPENROUTER PROCESSING\r\n\r\n:\r\nid: 1\r\nretry: 10\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\r\ndata\r\ndata: \"usage\":\r\ndata:null}\r\n\r\n" +
			"datax: {\"usage\":{\"prompt_tokens\":1}}\r\n data: {\r\n\r\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\r\n\r\ndata: [DONE]\r\n\r\n",
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "chat, CR", api: dialect.Chat,
		body:  strings.ReplaceAll(sse(delta(`"content":"Hi"`), chunk(`[]`, `{"prompt_tokens":3,"completion_tokens":2}`), "[DONE]"), "\n", "\r"),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "chat, garbage between events", api: dialect.Chat,
		body: sse(delta(`"content":"Hi"`), `{"usage":{"prompt_tokens":99`, `}}} what?`, `{"usage":{"prompt_tokens":98},"x":"`, `<html>`, `"{"`, `7`, `{"usag\u006`, `{"usag\`,
			chunk(`[]`, `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`)),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true, Tier: "standard"},
		truth: 2,
	},
	{
		name: "chat, lines that end in a number or a string", api: dialect.Chat,
		body: sse("{\"usage\":{\"prompt_tokens\":9\ndata:9}}", "{\"usage\":{\"prompt_tokens\":8},\"x\":\"a\ndata:b\"}", "{\"usage\":{\"prompt_tokens\":7},\"x\":[\"a\ndata\ndata:b\"]}") +
			sse("{\"usage\":{\"prompt_tokens\":\ndata\ndata:3\ndata:,\"completion_tokens\":2\ndata: }}"),
		want:  llm.Usage{Input: 3, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "chat, Gemini's own, usage in every chunk, thoughts in the total alone", api: dialect.Chat,
		body: sse(`{"choices":[{"delta":{"content":"One"},"index":0}],"usage":{"completion_tokens":1,"prompt_tokens":8,"total_tokens":59}}`,
			`{"choices":[{"delta":{"content":" two three"},"index":0,"finish_reason":"stop"}],"usage":{"completion_tokens":3,"prompt_tokens":8,"total_tokens":61}}`, "[DONE]"),
		want:  llm.Usage{Input: 8, Output: 53, Exact: true},
		truth: 53,
	},
	{
		name: "chat, DeepSeek", api: dialect.Chat,
		body: sse(delta(`"content":null,"reasoning_content":"Hmm"`), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":70,"completion_tokens":40,"total_tokens":110,"completion_tokens_details":{"reasoning_tokens":31},"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":6}}`, "[DONE]"),
		want:  llm.Usage{Input: 70, Cached: 64, Output: 40, Reasoning: 31, Exact: true, Tier: "standard"},
		truth: 40,
	},
	{
		name: "chat, OpenAI's error in a stream", api: dialect.Chat,
		body:  sse(delta(`"content":"Hel"`), `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`, "[DONE]"),
		want:  llm.Usage{Input: -1, Output: 1, Tier: "standard"},
		fault: "server_error",
		truth: 5,
	},
	{
		name: "chat, text after the usage", api: dialect.Chat,
		body:  sse(`{"choices":[{"delta":{"content":"One"}}],"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9}}`, delta(`"content":" two"`), delta(`"content":" three"`)),
		want:  llm.Usage{Input: 8, Output: 3, Tier: "standard"},
		truth: 3,
	},
	{
		name: "completions, streamed", api: dialect.Completions,
		body: sse(`{"id":"cmpl-1","object":"text_completion","choices":[{"text":"This","index":0,"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"id":"cmpl-1","choices":[{"text":" is","index":0}],"usage":null}`, `{"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, "[DONE]"),
		want:  llm.Usage{Input: 5, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "embeddings", api: dialect.Embeddings,
		body: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.0023064255,-0.009327292,` + strings.Repeat("-0.0028842222,", 20) +
			`1e-05]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		want: llm.Usage{Input: 8, Exact: true},
	},
	{
		name: "embeddings, base64", api: dialect.Embeddings,
		body: `{"object":"list","data":[{"embedding":"AAAAPw8="}],"usage":{"prompt_tokens":8}}`,
		want: llm.Usage{Input: 8, Exact: true},
	},
	{
		name: "responses, whole", api: dialect.Responses,
		body: `{"id":"resp_67","object":"response","status":"completed","error":null,"incomplete_details":null,"instructions":"Be {brief","model":"gpt-6.1-sol","output":[` +
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Thought"}]},` +
			`{"type":"message","id":"msg_67","status":"completed","role":"assistant","content":[{"type":"output_text","text":"In a peaceful grove beneath a silver moon","annotations":[]}]},` +
			`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Paris\"}"}],"text":{"format":{"type":"text"}},"tools":[],` +
			`"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":16},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123},"user":null}`,
		want:  llm.Usage{Input: 36, Cached: 16, Output: 87, Reasoning: 64, Exact: true},
		truth: 87,
	},
	{
		name: "responses, streamed", api: dialect.Responses,
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
		name: "responses, sound is no text", api: dialect.Responses,
		body:  named(`{"type":"response.audio.delta","delta":"` + strings.Repeat("UklGR", 50) + `"}`),
		want:  llm.Usage{Input: -1},
		truth: 9,
	},
	{
		name: "responses, failed", api: dialect.Responses,
		body: named(`{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"The model failed"},"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}`),
		want:  llm.Usage{Input: 5, Output: 2, Exact: true},
		fault: "server_error",
		truth: 2,
	},
	{
		name: "responses, error", api: dialect.Responses,
		body:  named(`{"type":"response.output_text.delta","delta":"Hi"}`, `{"type":"error","code":"rate_limit_exceeded","message":"Slow down","param":null,"sequence_number":9}`),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "rate_limit_exceeded",
		truth: 3,
	},
	{
		name: "names and codes with escapes", api: dialect.Chat,
		body: sse(`{"us\u0061ge":{"prompt\u005Ftokens":4,"\u0063ompletion_tokens":2},"\u0065rror":{"code":"s\u0065rver\/error\u00e9\n"}}`,
			`{"usage\u0000":{"prompt_tokens":9},"usage`+strings.Repeat("x", 200)+`":{"prompt_tokens":9},"\ud83d\ude00":1,"usag\\u0065":{"prompt_tokens":9}}`),
		want:  llm.Usage{Input: 4, Output: 2, Exact: true},
		fault: "server/erroré\n",
		truth: 2,
	},
	{
		name: "values of other kinds", api: dialect.Chat,
		body: sse(`{"usage":{"prompt_tokens":4,"completion_tokens":2}}`, `{"usage":"x","choices":7,"error":null,"delta":[true],"message":[[{"usage":{"input_tokens":7}}]]}`,
			`{"usage":[],"error":"","response":{"usage":false,"error":null}}`, `{"usage":{"prompt_tokens":{"prompt_tokens":1},"completion_tokens":"9","prompt_tokens_details":null}}`,
			`{"choices":[{"delta":{"usage":{"prompt_tokens":9}},"message":{"usage":{"input_tokens":9,"output_tokens":9}}}]}`,
			`{"other":{"usage":{"prompt_tokens":7}},"data":[{"usage":{"prompt_tokens":7}}]}`),
		want:  llm.Usage{Input: 4, Output: 2, Exact: true},
		truth: 2,
	},
	{name: "nothing", api: dialect.Chat, want: llm.Usage{Input: -1}},
	{name: "no JSON", api: dialect.Chat, body: "<html>{\"usage\":{\"prompt_tokens\":1}}</html>", want: llm.Usage{Input: -1}},
	{
		name: "Cohere's members at another's", api: dialect.Chat,
		body: `{"meta":{"billed_units":{"input_tokens":1,"output_tokens":1}},"text":"x","delta":{"usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}}`,
		want: llm.Usage{Input: -1},
	},
	{
		name: "parts: chat with sound, priority", api: dialect.Chat,
		body: `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"UklGRg==","transcript":"Hi"}},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":300,"completion_tokens":150,"total_tokens":450,"prompt_tokens_details":{"cached_tokens":64,"text_tokens":80,"audio_tokens":200,"image_tokens":20},` +
			`"completion_tokens_details":{"reasoning_tokens":10,"audio_tokens":120,"text_tokens":20,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"priority"}`,
		want:  llm.Usage{Input: 300, Cached: 64, InputAudio: 200, InputImage: 20, Output: 150, Reasoning: 10, OutputAudio: 120, Tier: "priority", Exact: true},
		truth: 150,
	},
	{
		name: "parts: chat, streamed, the tier in every chunk", api: dialect.Chat,
		body: strings.ReplaceAll(sse(delta(`"content":"Hello"`), delta(`"content":" world"`), delta(`"content":" and"`), delta(`"content":" all"`), delta(`"content":" others"`),
			chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":6}}`), "[DONE]"), `"default"`, `"flex"`),
		want:  llm.Usage{Input: 11, Cached: 4, InputAudio: 6, Output: 6, Tier: "flex", Exact: true},
		truth: 6,
	},
	{
		name: "parts: responses, streamed, the last tier counts", api: dialect.Responses,
		body: named(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","service_tier":"auto","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","service_tier":"flex","usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":40,"image_tokens":30},`+
				`"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":99}}}`),
		want:  llm.Usage{Input: 90, Cached: 40, InputImage: 30, Output: 9, Reasoning: 4, Tier: "flex", Exact: true},
		truth: 9,
	},
	{
		name: "parts: an image", api: dialect.Responses,
		body: `{"created":1713833628,"data":[{"b64_json":"aGk="}],"usage":{"total_tokens":330,"input_tokens":50,"output_tokens":280,` +
			`"input_tokens_details":{"text_tokens":10,"image_tokens":40},"output_tokens_details":{"image_tokens":272,"text_tokens":8}}}`,
		want:  llm.Usage{Input: 50, InputImage: 40, Output: 280, OutputImage: 272, Exact: true},
		truth: 280,
	},
	{
		name: "parts: cached sound", api: dialect.Responses,
		body: `{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"audio_tokens":80,"cached_tokens_details":{"text_tokens":10,"audio_tokens":50}},` +
			`"output_tokens":5,"output_tokens_details":{"audio_tokens":3}}}`,
		want:  llm.Usage{Input: 100, Cached: 60, InputAudio: 80, CachedAudio: 50, Output: 5, OutputAudio: 3, Exact: true},
		truth: 5,
	},
	{
		name: "parts: larger than the whole", api: dialect.Chat,
		body: `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":900,"audio_tokens":7,"image_tokens":900},` +
			`"cache_creation":{"ephemeral_1h_input_tokens":900},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":900,"image_tokens":900}}}`,
		want:  llm.Usage{Input: 10, Cached: 8, CacheWrite: 2, CacheWriteHour: 2, InputAudio: 7, CachedAudio: 5, InputImage: 3, Output: 5, Reasoning: 2, OutputAudio: 3, Exact: true},
		truth: 5,
	},
	{
		name: "parts: nonsense", api: dialect.Chat,
		body: `{"service_tier":null,"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":-0.5,"cost_details":{"upstream_inference_cost":null},"is_byok":1,"service_tier":"",` +
			`"prompt_tokens_details":{"audio_tokens":-1,"image_tokens":2.5},"completion_tokens_details":{"audio_tokens":1e99,"image_tokens":"7"}}}`,
		want:  llm.Usage{Input: 10, Output: 5, Exact: true},
		truth: 5,
	},
	{
		name: "parts: a cost that is an object", api: dialect.Chat,
		body:  `{"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":{"total_cost":0.5}}}`,
		want:  llm.Usage{Input: 10, Output: 5, Exact: true},
		truth: 5,
	},
}

// Only a response of OpenAI's can be asked for in the background, and only in one spelling.
func TestAResponseIsAskedForInTheBackgroundInOneSpelling(t *testing.T) {
	for _, c := range []struct {
		api   dialect.API
		body  string
		want  bool
		wrong bool
	}{
		{dialect.Responses, `{"model":"m","background":true}`, true, false},
		{dialect.Responses, `{"model":"m","background":false}`, false, false},
		{dialect.Responses, `{"model":"m","background":null}`, false, false},
		{dialect.Responses, `{"model":"m"}`, false, false},
		{dialect.Responses, `{"model":"m","background":"true"}`, false, true},
		{dialect.Responses, `{"model":"m","Background":true}`, false, true},
		{dialect.Responses, `{"model":"m","background":false,"background":true}`, true, true},
		{dialect.Chat, `{"model":"m","background":true}`, false, false},
	} {
		r, err := dialect.Endpoint{Provider: dialect.OpenAI, API: c.api}.Read([]byte(c.body))
		if err != nil || r.Background != c.want || (r.Wrong != "") != c.wrong {
			t.Errorf("%s %s: %t, wrong: %q, %v", c.api, c.body, r.Background, r.Wrong, err)
		}
	}
}

// The status of a response counts once the response has come whole, wherever in it the status stands.
func TestTheStatusOfAResponseCountsOnceItHasComeWhole(t *testing.T) {
	const whole = `{"id":"resp_1","status":"completed","output":[{"id":"msg_1","status":"in_progress","content":[{"text":"Hi"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`
	for _, c := range []struct{ body, id, status string }{
		{whole, "resp_1", "completed"},
		{whole[:len(whole)-1], "resp_1", ""},
		{`{"output":[{"id":"x","status":"failed"}],"usage":null,"status":"queued","id":"resp_2"}`, "resp_2", "queued"},
		{"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\n", "resp_3", "in_progress"},
		{"data: {\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\ndata: {\"item\":{\"status\":\"completed\"}}\n\ndata: {\"response\":{\"id\":\"resp_3\",\"status\":\"incomplete\"}}\n\n", "resp_3", "incomplete"},
	} {
		m := dialect.NewMeter(dialect.Responses, nil)
		m.Write([]byte(c.body))
		if m.ResponseID() != c.id || m.Status() != c.status {
			t.Errorf("%s: %q is %q, want %q is %q", c.body, m.ResponseID(), m.Status(), c.id, c.status)
		}
	}
}
