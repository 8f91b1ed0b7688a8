package dialect

import (
	"net/url"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// The gateway guesses the kind of a provider from its host.
func TestProviderAt(t *testing.T) {
	for host, want := range map[string]llm.Provider{
		"api.openai.com": OpenAI, "eu.api.openai.com": OpenAI, "here.openai.azure.com": Azure, "api.anthropic.com": Anthropic,
		"generativelanguage.googleapis.com": Gemini, "us-central1-aiplatform.googleapis.com": Vertex, "api.groq.com": Groq,
		"api.mistral.ai": Mistral, "codestral.mistral.ai": Mistral, "openrouter.ai": OpenRouter, "OpenRouter.AI.": OpenRouter,
		"api.cohere.com": Cohere, "bedrock-runtime.eu-west-1.amazonaws.com": Bedrock,
		"": "", "127.0.0.1": "", "notopenrouter.ai": "", "openrouter.ai.example.com": "", "s3.amazonaws.com": "",
	} {
		if got := ProviderAt(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		url  string
		want Endpoint
	}{
		{"https://api.openai.com/v1/chat/completions", Endpoint{Provider: OpenAI, API: Chat}},
		{"https://API.OpenAI.com:443/v1/chat/completions/", Endpoint{Provider: OpenAI, API: Chat}},
		{"https://api.openai.com./v1//chat/completions?x=1", Endpoint{Provider: OpenAI, API: Chat}},
		{"https://eu.api.openai.com/v1/responses", Endpoint{Provider: OpenAI, API: Responses}},
		{"https://api.openai.com/v1/responses/compact", Endpoint{Provider: OpenAI, API: Responses}},
		{"https://api.openai.com/v1/completions", Endpoint{Provider: OpenAI, API: Completions}},
		{"https://api.openai.com/v1/embeddings", Endpoint{Provider: OpenAI, API: Embeddings}},
		{"https://me.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21", Endpoint{Provider: Azure, API: Chat, Model: "my-gpt"}},
		{"https://me.services.ai.azure.com/anthropic/v1/messages", Endpoint{Provider: Anthropic, API: Messages}},
		{"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-x@2026:rawPredict", Endpoint{Provider: Anthropic, API: Messages, Model: "claude-x@2026"}},
		{"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-x@2026:streamRawPredict", Endpoint{Provider: Anthropic, API: Messages, Model: "claude-x@2026", Stream: true}},
		{"https://me.openai.azure.com/openai/deployments/my-image/images/generations", Endpoint{Provider: Azure, API: ImageGeneration, Model: "my-image"}},
		{"https://me.openai.azure.com/openai/deployments/my-ear/audio/transcriptions", Endpoint{Provider: Azure, API: Transcriptions, Model: "my-ear"}},
		{"https://me.openai.azure.com/openai/deployments/my-gpt/embeddings", Endpoint{Provider: Azure, API: Embeddings, Model: "my-gpt"}},
		{"https://me.openai.azure.com/openai/deployments/my%2Fgpt/completions", Endpoint{Provider: Azure, API: Completions, Model: "my/gpt"}},
		{"https://me.openai.azure.com/openai/v1/responses", Endpoint{Provider: Azure, API: Responses}},
		{"https://me.cognitiveservices.azure.com/openai/v1/chat/completions", Endpoint{Provider: Azure, API: Chat}},
		{"https://me.services.ai.azure.com/models/chat/completions", Endpoint{Provider: Azure, API: Chat}},
		{"https://me.openai.azure.com/openai/deployments/my-gpt/extensions/chat/completions", Endpoint{Provider: Azure, API: Chat, Model: "my-gpt"}},
		{"http://127.0.0.1:4000/openai/deployments/azure/gpt-4o/chat/completions", Endpoint{Provider: Azure, API: Chat, Model: "azure/gpt-4o"}},
		{"http://127.0.0.1:4000/engines/gpt-4o/chat/completions", Endpoint{Provider: Compatible, API: Chat, Model: "gpt-4o"}},
		{"http://127.0.0.1:4000/engines/azure/gpt-4o/chat/completions/", Endpoint{Provider: Compatible, API: Chat, Model: "azure/gpt-4o"}},
		{"https://api.openai.com/v1/engines/davinci/completions", Endpoint{Provider: OpenAI, API: Completions, Model: "davinci"}},
		{"https://api.openai.com/v1/engines/completions", Endpoint{Provider: OpenAI, API: Completions}},
		{"http://127.0.0.1:8080/openai/deployments/my-gpt/chat/completions", Endpoint{Provider: Azure, API: Chat, Model: "my-gpt"}},
		{"https://api.anthropic.com/v1/messages", Endpoint{Provider: Anthropic, API: Messages}},
		{"https://api.anthropic.com/v1/messages?beta=true", Endpoint{Provider: Anthropic, API: Messages}},
		{"http://[::1]:9/anthropic/v1/messages", Endpoint{Provider: Anthropic, API: Messages}},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent", Endpoint{Provider: Gemini, API: Generate, Model: "gemini-2.5-pro"}},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", Endpoint{Provider: Gemini, API: Generate, Model: "gemini-2.5-pro", Stream: true}},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini%2Fpro%3AgenerateContent", Endpoint{Provider: Gemini, API: Generate, Model: "gemini/pro"}},
		{"https://generativelanguage.googleapis.com/v1beta/tunedModels/mine:generateContent", Endpoint{Provider: Gemini, API: Generate, Model: "mine"}},
		{"https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", Endpoint{Provider: Gemini, API: Chat}},
		{"https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/gemini-2.5-pro:streamGenerateContent", Endpoint{Provider: Vertex, API: Generate, Model: "gemini-2.5-pro", Stream: true}},
		{"https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/123:generateContent", Endpoint{Provider: Vertex, API: Generate, Model: "123"}},
		{"http://localhost/v1beta/models/gemini-2.5-pro:generateContent", Endpoint{Provider: Gemini, API: Generate, Model: "gemini-2.5-pro"}},
		{"https://api.groq.com/openai/v1/chat/completions", Endpoint{Provider: Groq, API: Chat}},
		{"https://api.mistral.ai/v1/chat/completions", Endpoint{Provider: Mistral, API: Chat}},
		{"https://api.mistral.ai/v1/agents/completions", Endpoint{Provider: Mistral, API: Chat}},
		{"https://api.mistral.ai/v1/conversations", Endpoint{Provider: Mistral, API: Conversations}},
		{"https://api.mistral.ai/v1/conversations/conv_1", Endpoint{Provider: Mistral, API: Conversations}},
		{"https://api.mistral.ai/v1/conversations/conv_1/restart", Endpoint{Provider: Mistral, API: Conversations}},
		{"https://generativelanguage.googleapis.com/v1beta/interactions", Endpoint{Provider: Gemini, API: Interactions}},
		{"https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/interactions", Endpoint{Provider: Vertex, API: Interactions}},
		{"https://generativelanguage.googleapis.com/v1beta/models/e:batchEmbedContents", Endpoint{Provider: Gemini, API: GeminiEmbed, Model: "e"}},
		{"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/mistralai/models/m:streamRawPredict", Endpoint{Provider: Vertex, API: Chat, Model: "m", Stream: true}},
		{"https://codestral.mistral.ai/v1/fim/completions", Endpoint{Provider: Mistral, API: Completions}},
		{"https://openrouter.ai/api/v1/chat/completions", Endpoint{Provider: OpenRouter, API: Chat}},
		{"https://my-openrouter.ai/api/v1/chat/completions", Endpoint{Provider: Compatible, API: Chat}},
		{"https://notapi.openai.com.example/v1/chat/completions", Endpoint{Provider: Compatible, API: Chat}},
		{"http://localhost:11434/api/chat", Endpoint{Provider: Ollama, API: OllamaChat}},
		{"http://localhost:11434/api/generate", Endpoint{Provider: Ollama, API: OllamaGenerate}},
		{"http://localhost:11434/api/embed", Endpoint{Provider: Compatible, API: Embeddings}},
		{"https://api.cohere.com/v2/chat", Endpoint{Provider: Cohere, API: CohereChat}},
		{"https://api.cohere.ai/v1/chat", Endpoint{Provider: Cohere, API: CohereChat}},
		{"http://127.0.0.1/cohere/v2/embed", Endpoint{Provider: Cohere, API: CohereEmbed}},
		{"https://api.cohere.com/v1/embed", Endpoint{Provider: Cohere, API: CohereEmbed}},
		{"https://api.cohere.com/v2/rerank", Endpoint{Provider: Cohere, API: CohereRerank}},
		{"https://api.cohere.com/compatibility/v1/chat/completions", Endpoint{Provider: Cohere, API: Chat}},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-pro-v1:0/converse", Endpoint{Provider: Bedrock, API: Converse, Model: "amazon.nova-pro-v1:0"}},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x-v1%3A0/converse-stream", Endpoint{Provider: Bedrock, API: Converse, Model: "anthropic.claude-x-v1:0", Stream: true}},
		{"http://127.0.0.1/bedrock/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.claude-x/invoke", Endpoint{Provider: Bedrock, API: Invoke, Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.claude-x"}},
		{"http://127.0.0.1/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.claude-x/invoke-with-response-stream", Endpoint{Provider: Bedrock, API: Invoke, Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.claude-x", Stream: true}},
		{"http://127.0.0.1/Model//m//Converse/", Endpoint{Provider: Bedrock, API: Converse, Model: "m"}},
		{"https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions", Endpoint{Provider: Bedrock, API: Chat}},
		{"http://127.0.0.1:8000/v1/responses", Endpoint{Provider: Compatible, API: Responses}},
		{"/v1/chat/completions", Endpoint{Provider: Compatible, API: Chat}}, // as a server sees it
		{"/completions", Endpoint{Provider: Compatible, API: Completions}},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Recognize("POST", u); !ok || got != c.want {
			t.Errorf("%s is %+v, %v: want %+v", c.url, got, ok, c.want)
		}
		for _, method := range []string{"GET", "", "post", "DELETE"} {
			if _, ok := Recognize(method, u); ok {
				t.Errorf("%q %s is a call", method, c.url)
			}
		}
	}
}

func TestRecognizeNoCall(t *testing.T) {
	for _, s := range []string{
		"", "/", "//", "https://api.openai.com",
		"https://api.openai.com/v1/models",
		"https://bedrock-runtime.us-east-1.amazonaws.com/model/m/count-tokens",
		"https://bedrock-runtime.us-east-1.amazonaws.com/model//converse",
		"https://bedrock-runtime.us-east-1.amazonaws.com/converse",
		"https://bedrock-runtime.us-east-1.amazonaws.com/async-invoke",
		"https://api.openai.com/v1/responses/input_tokens",
		"https://api.openai.com/v1/files/compact",
		"https://api.openai.com/v1/responses/resp_1/cancel",
		"https://api.openai.com/v1/chat/completions/chatcmpl-1",
		"https://api.openai.com/v1/threads/thread_1/messages",
		"https://api.openai.com/v1/files",
		"https://api.anthropic.com/v1/messages/count_tokens",
		"https://api.anthropic.com/v1/messages/batches",
		"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:countTokens",
		"https://generativelanguage.googleapis.com/v1beta/models/:generateContent",
		"https://generativelanguage.googleapis.com/v1beta/models/generateContent",
		"https://generativelanguage.googleapis.com/v1beta/files/x:generateContent",
		"http://localhost:11434/api/tags", "http://localhost:11434/chat", "http://localhost/v1/generate",
		"https://api.openai.com/v1/mycompletions",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := Recognize("POST", u); ok || e != (Endpoint{}) {
			t.Errorf("%s is a call of %+v", s, e)
		}
	}
}

func TestRecognizeAllocatesNothing(t *testing.T) {
	for _, s := range []string{
		"https://me.openai.azure.com/openai/deployments/my-gpt/chat/completions",
		"https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent",
		"https://api.openai.com/v1/models",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { Recognize("POST", u) }); n != 0 {
			t.Errorf("%s costs %v allocations", s, n)
		}
	}
}
