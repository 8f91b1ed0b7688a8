package dialect_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, bedrockStreams...) }

var bedrockStreams = []meterStream{
	{
		name: "Converse, whole", api: dialect.Converse,
		body: `{"metrics":{"latencyMs":816},"output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"text":"Hm","signature":"EqQB"}}},{"text":"Hello there"},` +
			`{"toolUse":{"toolUseId":"t","name":"look","input":{"city":"Rome"}}}],"role":"assistant"}},"stopReason":"end_turn",` +
			`"usage":{"cacheReadInputTokens":40,"cacheWriteInputTokens":2,"inputTokens":30,"outputTokens":628,"totalTokens":700}}`,
		want:  llm.Usage{Input: 72, Cached: 40, CacheWrite: 2, Output: 628, Exact: true},
		truth: 628,
	},
	{
		name: "Converse, streamed", api: dialect.Converse,
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
		name: "Converse, a stream that fails", api: dialect.Converse,
		body: converseFrames("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Hello"}}`) +
			frame(`{"message":"Too many tokens, please wait before trying again."}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "throttlingException",
		truth: 1,
	},
	{
		name: "frames that are none", api: dialect.Converse,
		body: "\x00\x00\x00\x30\x00\x00\x00\x01garbage" + converseFrames("metadata", `{"usage":{"inputTokens":125,"outputTokens":60}}`),
		want: llm.Usage{Input: -1},
	},
	{
		name: "Invoke of Anthropic's, streamed", api: dialect.Invoke,
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
		name: "Invoke of Nova's, streamed", api: dialect.Invoke,
		body: invokeFrames(
			`{"messageStart":{"role":"assistant"}}`,
			`{"contentBlockDelta":{"delta":{"text":"Hello"},"contentBlockIndex":0}}`,
			`{"metadata":{"usage":{"inputTokens":4,"outputTokens":7,"cacheReadInputTokenCount":0}},"amazon-bedrock-invocationMetrics":{"inputTokenCount":4,"outputTokenCount":7}}`,
		),
		want:  llm.Usage{Input: 4, Output: 7, Exact: true},
		truth: 7,
	},
	{
		name: "Invoke of Titan's, cut off", api: dialect.Invoke,
		body: invokeFrames(`{"outputText":"Hello","index":0}`, `{"outputText":" there","index":0}`),
		want: llm.Usage{Input: -1, Output: 2}, truth: 2,
	},
	{
		name: "parts: Converse, caches and a tier", api: dialect.Converse,
		body: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":30,"outputTokens":2,"totalTokens":832,"cacheReadInputTokens":500,` +
			`"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"1h","inputTokens":200},{"ttl":"5m","inputTokens":100}]},"serviceTier":{"type":"priority"}}`,
		want:  llm.Usage{Input: 830, Cached: 500, CacheWrite: 300, CacheWriteHour: 200, Output: 2, Tier: "priority", Exact: true},
		truth: 2,
	},
}

// Bedrock's headers report the usage of a model, whatever its own format reports.
func TestInvokeHeadersReportUsage(t *testing.T) {
	told := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set("X-Amzn-Bedrock-"+pairs[i]+"-Token-Count", pairs[i+1])
		}
		return h
	}
	for _, c := range []struct {
		name string
		api  dialect.API
		h    http.Header
		body string
		want llm.Usage
	}{
		{"Llama", dialect.Invoke, told("Input", "7", "Output", "9"), `{"generation":"Hello there","stop_reason":"stop"}`, llm.Usage{Input: 7, Output: 9, Exact: true}},
		{"with a cache", dialect.Invoke, told("Input", "7", "Output", "9", "Cache-Read-Input", "3", "Cache-Write-Input", "2"), `{}`, llm.Usage{Input: 12, Cached: 3, CacheWrite: 2, Output: 9, Exact: true}},
		{"embeddings", dialect.Invoke, told("Input", "7"), `{"embedding":[0.1]}`, llm.Usage{Input: 7, Exact: true}},
		{"the body counts", dialect.Invoke, told("Input", "7"), `{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":7,"output_tokens":9}}`, llm.Usage{Input: 7, Output: 9, Exact: true}},
		{"text without a number", dialect.Invoke, told("Input", "7"), `{"generation":"Hello"}`, llm.Usage{Input: 7, Output: 1}},
		{"nonsense", dialect.Invoke, told("Input", "-7", "Output", "x"), `{}`, llm.Usage{Input: -1}},
		{"another API", dialect.Chat, told("Input", "7", "Output", "9"), `{}`, llm.Usage{Input: -1}},
	} {
		if got := meter(c.api, c.h, c.body).Usage; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The meter allocates nothing for a frame.
func TestFramesAllocateNothing(t *testing.T) {
	stream := []byte(invokeFrames(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`))
	m := dialect.NewMeter(dialect.Invoke, nil)
	m.Write(stream)
	if n := testing.AllocsPerRun(100, func() { m.Write(stream) }); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// The number of answers that a model of Bedrock is asked for is no bound of their tokens.
func TestALowerBoundLeavesTheNumberOfAnswers(t *testing.T) {
	body := []byte(`{"prompt":"Hi","max_tokens":900,"num_generations":500}`)
	r, err := dialect.Endpoint{Provider: dialect.Bedrock, API: dialect.Invoke, Model: "m"}.Read(body)
	if err != nil || !r.SetMaxOutput(body, 100) {
		t.Fatalf("it cannot be lowered: %+v, %v", r, err)
	}
	edited, _ := r.Edited(body)
	if got, want := string(bytes.Join(edited, nil)), `{"prompt":"Hi","max_tokens":100,"num_generations":500}`; got != want {
		t.Errorf("it becomes %s: want %s", got, want)
	}
}

// What a request to Bedrock's Invoke can use beside tokens depends on its model. A number of images that can be read in two
// ways is one that nobody knows.
func TestInvokedUnits(t *testing.T) {
	images := func(n int64) (u llm.Units) { u[llm.Images] = n; return u }
	searches := func(n int64) (u llm.Units) { u[llm.SearchUnits] = n; return u }
	documents := `{"query":"two","documents":["one"` + strings.Repeat(`,"two"`, 100) + `]}`
	for _, c := range []struct {
		model, body string
		want        llm.Units
	}{
		{"amazon.nova-canvas-v1:0", `{"taskType":"TEXT_IMAGE","imageGenerationConfig":{"numberOfImages":5}}`, images(5)},
		{"us.amazon.nova-canvas-v1:0", `{"imageGenerationConfig":{"numberOfImages":2}}`, images(2)},
		{"arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-image-generator-v1", `{"taskType":"BACKGROUND_REMOVAL"}`, images(1)},
		{"amazon.titan-image-generator-v2:0", `{"imageGenerationConfig":{"numberOfImages":-3}}`, images(1)},
		{"amazon.nova-canvas-v1:0", `{"imageGenerationConfig":{"numberOfImages":5,"numberOfImages":1}}`, images(-1)},
		{"amazon.nova-canvas-v1:0", `{"imageGenerationConfig":{"numberOfImages":5},"ImageGenerationConfig":{}}`, images(-1)},
		{"amazon.nova-canvas-v1:0", `{"imageGenerationConfig":{"numberOfImages":"5"}}`, images(-1)},
		{"amazon.nova-canvas-v1:0", `{"imageGenerationConfig":{"numberOfImages":9000000000}}`, images(-1)},
		{"stability.stable-image-ultra-v1:1", `{"prompt":"a cat"}`, images(1)},
		{"cohere.rerank-v3-5:0", documents, searches(2)},
		{"amazon.rerank-v1:0", `{"query":"two","documents":["one"]}`, searches(1)},
		{"amazon.titan-embed-image-v1", `{"inputText":"one"}`, llm.Units{}},
		{"amazon.nova-pro-v1:0", `{"messages":[]}`, llm.Units{}},
	} {
		r, err := dialect.Endpoint{Provider: dialect.Bedrock, API: dialect.Invoke, Model: c.model}.Read([]byte(c.body))
		if err != nil || r.Units != c.want {
			t.Errorf("%s, %.100s: %v, %v; want %v", c.model, c.body, r.Units, err, c.want)
		}
	}
}
