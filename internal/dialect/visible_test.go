package dialect_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func TestVisible(t *testing.T) {
	chat := func(p llm.Provider) dialect.Endpoint { return dialect.Endpoint{Provider: p, API: dialect.Chat} }
	messages := dialect.Endpoint{Provider: dialect.Anthropic, API: dialect.Messages}
	for _, c := range []struct {
		e    dialect.Endpoint
		body string
		want bool
	}{
		{chat(dialect.OpenAI), `{"model":"gpt-4o","stream":true}`, true},
		{chat(dialect.OpenAI), `{"model":"gpt-4o"}`, false},
		{chat(dialect.OpenAI), `{"model":"gpt-5-chat-latest","stream":true}`, true},
		{chat(dialect.OpenAI), `{"model":"gpt-5-mini","stream":true}`, false},
		{chat(dialect.OpenAI), `{"model":"a-new-one","stream":true}`, false},
		{chat(dialect.OpenAI), `{"model":"gpt-4o-audio-preview","stream":true}`, false},
		{chat(dialect.OpenAI), `{"model":"gpt-4o","stream":true,"modalities":["text"]}`, true},
		{chat(dialect.OpenAI), `{"model":"gpt-4o","stream":true,"modalities":["text","audio"]}`, false},
		{dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Responses}, `{"model":"gpt-4.1","stream":true}`, true},
		{dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Responses}, `{"model":"gpt-4.1","stream":true,"background":true}`, false},
		{dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Embeddings}, `{"model":"gpt-4","input":"a"}`, false},
		{chat(dialect.OpenRouter), `{"model":"meta-llama/llama-3.3-70b-instruct","stream":true}`, true},
		{chat(dialect.OpenRouter), `{"model":"meta-llama/llama-3.3-70b-instruct","stream":true,"reasoning":{"exclude":true}}`, false},
		{chat(dialect.OpenRouter), `{"model":"openai/o3","stream":true}`, false},
		{chat(dialect.Compatible), `{"model":"qwen3","stream":true}`, true},
		{chat(dialect.Compatible), `{"model":"openai/gpt-5","stream":true}`, false},
		{chat(dialect.Groq), `{"model":"openai/gpt-oss-120b","stream":true}`, true},
		{chat(dialect.Groq), `{"model":"openai/gpt-oss-120b","stream":true,"include_reasoning":false}`, false},
		{chat(dialect.Groq), `{"model":"qwen/qwen3-32b","stream":true,"reasoning_format":"parsed"}`, true},
		{chat(dialect.Groq), `{"model":"qwen/qwen3-32b","stream":true,"reasoning_format":"hidden"}`, false},
		{chat(dialect.Mistral), `{"model":"magistral-medium","stream":true}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":9}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{ "type": "disabled" }}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{"type":"enabled","note":"disabled"}}`, false},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":null}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{"type":"enabled","budget_tokens":1024}}`, false},
		{dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate, Model: "gemini-2.0-flash", Stream: true}, `{}`, true},
		{dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate, Model: "gemini-2.5-pro", Stream: true}, `{}`, false},
		{dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate, Model: "gemini-2.0-flash-preview-image-generation", Stream: true}, `{}`, false},
		{dialect.Endpoint{Provider: dialect.Bedrock, API: dialect.Converse, Model: "anthropic.claude-sonnet-4-5-v1:0", Stream: true}, `{}`, true},
		{dialect.Endpoint{Provider: dialect.Bedrock, API: dialect.Converse, Model: "anthropic.claude-sonnet-4-5-v1:0", Stream: true}, `{"additionalModelRequestFields":{"thinking":{"type":"enabled"}}}`, false},
		{dialect.Endpoint{Provider: dialect.Ollama, API: dialect.OllamaChat}, `{"model":"llama3.2"}`, true},
		{dialect.Endpoint{Provider: dialect.Cohere, API: dialect.CohereChat}, `{"model":"command-a-03-2025","stream":true}`, true},
	} {
		r, err := c.e.Read([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Visible(); got != c.want {
			t.Errorf("%s, %s %s: %v, want %v", c.e.Provider, c.e.Model, c.body, got, c.want)
		}
	}
}
