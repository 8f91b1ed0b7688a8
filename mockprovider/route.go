package mockprovider

import (
	"iter"
	"net/url"
	"strings"
)

// API is the format of a call and of its answer.
type API string

// The APIs.
const (
	Chat           API = "chat"            // OpenAI's chat completions
	Responses      API = "responses"       // OpenAI's responses
	Completions    API = "completions"     // OpenAI's legacy completions
	Embeddings     API = "embeddings"      // OpenAI's embeddings
	Messages       API = "messages"        // Anthropic's messages
	Generate       API = "generate"        // Gemini's generateContent and streamGenerateContent
	OllamaChat     API = "ollama-chat"     // Ollama's /api/chat
	OllamaGenerate API = "ollama-generate" // Ollama's /api/generate
	CohereChat     API = "cohere-chat"     // Cohere's /v2/chat
	CohereEmbed    API = "cohere-embed"    // Cohere's /v2/embed
	CohereRerank   API = "cohere-rerank"   // Cohere's /v2/rerank
	Converse       API = "converse"        // Bedrock's converse and converse-stream
	Invoke         API = "invoke"          // Bedrock's invoke and invoke-with-response-stream, with models of Anthropic's
)

// generates reports whether answers of the API have output tokens.
func (a API) generates() bool { return a != Embeddings && a != CohereEmbed && a != CohereRerank }

// format reads calls and writes answers of an API.
type format interface {
	// read completes a call from the fields of its body. The error says what is wrong with them.
	read(c *Call) error

	whole(a *answer) object
	events(a *answer) iter.Seq[event]
	broken(a *answer) event // reports an error in mid-stream
	framing(c *Call) framing
}

// endpoint is what a URL leads to.
type endpoint struct {
	api    API
	format format
	model  string
	stream bool
	array  bool // a Gemini stream as an array
}

// routes are found by the ends of paths. The longer of two that fit comes first.
var routes = []struct {
	end string
	endpoint
}{
	{"/api/chat", endpoint{api: OllamaChat, format: ollama{chat: true}}},
	{"/api/generate", endpoint{api: OllamaGenerate, format: ollama{}}},
	{"/v2/chat", endpoint{api: CohereChat, format: cohereChat{}}},
	{"/v2/embed", endpoint{api: CohereEmbed, format: cohereEmbed{}}},
	{"/v2/rerank", endpoint{api: CohereRerank, format: cohereRerank{}}},
	{"/converse", endpoint{api: Converse, format: converse{}}},
	{"/converse-stream", endpoint{api: Converse, format: converse{}, stream: true}},
	{"/invoke", endpoint{api: Invoke, format: invoke{}}},
	{"/invoke-with-response-stream", endpoint{api: Invoke, format: invoke{}, stream: true}},
	{"/chat/completions", endpoint{api: Chat, format: chat{}}},
	{"/completions", endpoint{api: Completions, format: completions{}}},
	{"/responses", endpoint{api: Responses, format: responses{}}},
	{"/embeddings", endpoint{api: Embeddings, format: embeddings{}}},
	{"/messages", endpoint{api: Messages, format: messages{}}},
	{":generateContent", endpoint{api: Generate, format: gemini{}}},
	{":streamGenerateContent", endpoint{api: Generate, format: gemini{}, stream: true}},
}

// route returns what a URL leads to, if that is a call of a model.
func route(u *url.URL) (endpoint, bool) {
	for _, w := range routes {
		if before, ok := strings.CutSuffix(u.Path, w.end); ok {
			w.model = modelIn(before)
			w.array = w.stream && u.Query().Get("alt") != "sse"
			return w.endpoint, true
		}
	}
	return endpoint{}, false
}

// modelIn returns the model or the deployment that a path names, or "".
func modelIn(path string) string {
	for _, folder := range []string{"/models/", "/deployments/", "/model/"} {
		if _, name, ok := strings.Cut(path, folder); ok {
			return name
		}
	}
	return ""
}
