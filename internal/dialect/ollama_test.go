package dialect_test

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func init() { meterStreams = append(meterStreams, ollamaStreams...) }

var ollamaStreams = []meterStream{
	{
		name: "ollama, chat", api: dialect.OllamaChat,
		body: `{"model":"qwen3","created_at":"2026-11-15T10:00:00Z","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":"The"},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Toronto"}}}]},"done":false}` + "\n" +
			`{"model":"qwen3","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":342546000,"eval_count":28,"eval_duration":4535599000}` + "\n",
		want:  llm.Usage{Input: 26, Output: 28, Exact: true},
		truth: 28,
	},
	{
		name: "ollama, generate, the prompt is cached", api: dialect.OllamaGenerate,
		body: `{"model":"qwen3","response":"The","done":false}` + "\n" + `{"model":"qwen3","response":" sky","thinking":"","done":false}` + "\n" +
			`{"model":"qwen3","response":"","done":true,"context":[1,2,3],"eval_count":2}`,
		want:  llm.Usage{Input: -1, Output: 2, Exact: true},
		truth: 2,
	},
	{
		name: "ollama, error", api: dialect.OllamaGenerate,
		body:  `{"model":"qwen3","response":"The","done":false}` + "\n" + `{"error":"an error was encountered while running the model"}` + "\n",
		want:  llm.Usage{Input: -1, Output: 1},
		fault: "error",
		truth: 4,
	},
}
