package mockprovider

import (
	"fmt"
	"slices"
	"strings"
)

// Provider says whose headers and errors an answer has.
type Provider string

// The providers.
const (
	OpenAI     Provider = "openai"
	Azure      Provider = "azure"
	Anthropic  Provider = "anthropic"
	Gemini     Provider = "gemini"
	Vertex     Provider = "vertex"
	Groq       Provider = "groq"
	Mistral    Provider = "mistral"
	OpenRouter Provider = "openrouter"
	Ollama     Provider = "ollama"
	Cohere     Provider = "cohere"
	Bedrock    Provider = "bedrock"
)

var providers = []Provider{OpenAI, Azure, Anthropic, Gemini, Vertex, Groq, Mistral, OpenRouter, Ollama, Cohere, Bedrock}

func providerOf(name string) (Provider, error) {
	if p := Provider(name); slices.Contains(providers, p) {
		return p, nil
	}
	return "", fmt.Errorf("it must be one of %v", providers)
}

// hosts maps the ends of host names to providers.
var hosts = []struct {
	end      string
	provider Provider
}{
	{".openai.azure.com", Azure},
	{"api.openai.com", OpenAI},
	{"api.anthropic.com", Anthropic},
	{"generativelanguage.googleapis.com", Gemini},
	{"aiplatform.googleapis.com", Vertex},
	{"api.groq.com", Groq},
	{"api.mistral.ai", Mistral},
	{"openrouter.ai", OpenRouter},
	{"api.cohere.com", Cohere},
	{".amazonaws.com", Bedrock},
}

// providerAt returns the provider of a host, or else that of the API.
func providerAt(host string, api API) Provider {
	for _, h := range hosts {
		if strings.HasSuffix(host, h.end) {
			return h.provider
		}
	}
	switch api {
	case Messages:
		return Anthropic
	case Generate:
		return Gemini
	case OllamaChat, OllamaGenerate:
		return Ollama
	case CohereChat, CohereEmbed, CohereRerank:
		return Cohere
	case Converse, Invoke:
		return Bedrock
	}
	return OpenAI
}
