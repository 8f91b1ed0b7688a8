package llm_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

func TestVisible(t *testing.T) {
	chat := func(p llm.Provider) llm.Endpoint { return llm.Endpoint{Provider: p, API: llm.Chat} }
	messages := llm.Endpoint{Provider: llm.Anthropic, API: llm.Messages}
	for _, c := range []struct {
		e    llm.Endpoint
		body string
		want bool
	}{
		{chat(llm.OpenAI), `{"model":"gpt-4o","stream":true}`, true},
		{chat(llm.OpenAI), `{"model":"gpt-4o"}`, false},
		{chat(llm.OpenAI), `{"model":"gpt-5-chat-latest","stream":true}`, true},
		{chat(llm.OpenAI), `{"model":"gpt-5-mini","stream":true}`, false},
		{chat(llm.OpenAI), `{"model":"a-new-one","stream":true}`, false},
		{chat(llm.OpenAI), `{"model":"gpt-4o-audio-preview","stream":true}`, false},
		{chat(llm.OpenAI), `{"model":"gpt-4o","stream":true,"modalities":["text"]}`, true},
		{chat(llm.OpenAI), `{"model":"gpt-4o","stream":true,"modalities":["text","audio"]}`, false},
		{llm.Endpoint{Provider: llm.OpenAI, API: llm.Responses}, `{"model":"gpt-4.1","stream":true}`, true},
		{llm.Endpoint{Provider: llm.OpenAI, API: llm.Responses}, `{"model":"gpt-4.1","stream":true,"background":true}`, false},
		{llm.Endpoint{Provider: llm.OpenAI, API: llm.Embeddings}, `{"model":"gpt-4","input":"a"}`, false},
		{chat(llm.OpenRouter), `{"model":"meta-llama/llama-3.3-70b-instruct","stream":true}`, true},
		{chat(llm.OpenRouter), `{"model":"meta-llama/llama-3.3-70b-instruct","stream":true,"reasoning":{"exclude":true}}`, false},
		{chat(llm.OpenRouter), `{"model":"openai/o3","stream":true}`, false},
		{chat(llm.Compatible), `{"model":"qwen3","stream":true}`, true},
		{chat(llm.Compatible), `{"model":"openai/gpt-5","stream":true}`, false},
		{chat(llm.Groq), `{"model":"openai/gpt-oss-120b","stream":true}`, true},
		{chat(llm.Groq), `{"model":"openai/gpt-oss-120b","stream":true,"include_reasoning":false}`, false},
		{chat(llm.Groq), `{"model":"qwen/qwen3-32b","stream":true,"reasoning_format":"parsed"}`, true},
		{chat(llm.Groq), `{"model":"qwen/qwen3-32b","stream":true,"reasoning_format":"hidden"}`, false},
		{chat(llm.Mistral), `{"model":"magistral-medium","stream":true}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":9}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{ "type": "disabled" }}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{"type":"enabled","note":"disabled"}}`, false},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":null}`, true},
		{messages, `{"model":"claude-sonnet-4-5","stream":true,"thinking":{"type":"enabled","budget_tokens":1024}}`, false},
		{llm.Endpoint{Provider: llm.Gemini, API: llm.Generate, Model: "gemini-2.0-flash", Stream: true}, `{}`, true},
		{llm.Endpoint{Provider: llm.Gemini, API: llm.Generate, Model: "gemini-2.5-pro", Stream: true}, `{}`, false},
		{llm.Endpoint{Provider: llm.Gemini, API: llm.Generate, Model: "gemini-2.0-flash-preview-image-generation", Stream: true}, `{}`, false},
		{llm.Endpoint{Provider: llm.Bedrock, API: llm.Converse, Model: "anthropic.claude-sonnet-4-5-v1:0", Stream: true}, `{}`, true},
		{llm.Endpoint{Provider: llm.Bedrock, API: llm.Converse, Model: "anthropic.claude-sonnet-4-5-v1:0", Stream: true}, `{"additionalModelRequestFields":{"thinking":{"type":"enabled"}}}`, false},
		{llm.Endpoint{Provider: llm.Ollama, API: llm.OllamaChat}, `{"model":"llama3.2"}`, true},
		{llm.Endpoint{Provider: llm.Cohere, API: llm.CohereChat}, `{"model":"command-a-03-2025","stream":true}`, true},
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
