package mockprovider

import (
	"fmt"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

var providers = []llm.Provider{llm.OpenAI, llm.Azure, llm.Anthropic, llm.Gemini, llm.Vertex, llm.Groq, llm.Mistral, llm.OpenRouter, llm.Ollama, llm.Cohere, llm.Bedrock}

func providerOf(name string) (llm.Provider, error) {
	if p := llm.Provider(name); slices.Contains(providers, p) {
		return p, nil
	}
	return "", fmt.Errorf("it must be one of %v", providers)
}

// hosts maps the ends of host names to providers.
var hosts = []struct {
	end      string
	provider llm.Provider
}{
	{".openai.azure.com", llm.Azure},
	{"api.openai.com", llm.OpenAI},
	{"api.anthropic.com", llm.Anthropic},
	{"generativelanguage.googleapis.com", llm.Gemini},
	{"aiplatform.googleapis.com", llm.Vertex},
	{"api.groq.com", llm.Groq},
	{"api.mistral.ai", llm.Mistral},
	{"openrouter.ai", llm.OpenRouter},
	{"api.cohere.com", llm.Cohere},
	{".amazonaws.com", llm.Bedrock},
}

// providerAt returns the provider of a host, or else that of the API.
func providerAt(host string, api llm.API) llm.Provider {
	for _, h := range hosts {
		if strings.HasSuffix(host, h.end) {
			return h.provider
		}
	}
	switch api {
	case llm.Messages:
		return llm.Anthropic
	case llm.Generate:
		return llm.Gemini
	case llm.OllamaChat, llm.OllamaGenerate:
		return llm.Ollama
	case llm.CohereChat, llm.CohereEmbed, llm.CohereRerank:
		return llm.Cohere
	case llm.Converse, llm.Invoke:
		return llm.Bedrock
	}
	return llm.OpenAI
}
