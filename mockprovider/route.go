package mockprovider

import (
	"iter"
	"net/url"
	"strings"
)

// API is the format that a call and its answer have.
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

// format is how calls and answers of an API are written.
type format interface {
	// read completes a call by the fields of its body. The error says what is
	// wrong with them.
	read(c *Call) error

	whole(a *answer) object
	events(a *answer) iter.Seq[event]
	broken(a *answer) event // tells an error in mid-stream
	framing(c *Call) framing
}

// way is where a URL leads.
type way struct {
	api    API
	format format
	model  string
	stream bool
	array  bool // a stream of Gemini as an array
}

// ways are those that paths end with. The longer of two that fit comes first.
var ways = []struct {
	end string
	way
}{
	{"/api/chat", way{api: OllamaChat, format: ollama{chat: true}}},
	{"/api/generate", way{api: OllamaGenerate, format: ollama{}}},
	{"/v2/chat", way{api: CohereChat, format: cohereChat{}}},
	{"/v2/embed", way{api: CohereEmbed, format: cohereEmbed{}}},
	{"/v2/rerank", way{api: CohereRerank, format: cohereRerank{}}},
	{"/converse", way{api: Converse, format: converse{}}},
	{"/converse-stream", way{api: Converse, format: converse{}, stream: true}},
	{"/invoke", way{api: Invoke, format: invoke{}}},
	{"/invoke-with-response-stream", way{api: Invoke, format: invoke{}, stream: true}},
	{"/chat/completions", way{api: Chat, format: chat{}}},
	{"/completions", way{api: Completions, format: completions{}}},
	{"/responses", way{api: Responses, format: responses{}}},
	{"/embeddings", way{api: Embeddings, format: embeddings{}}},
	{"/messages", way{api: Messages, format: messages{}}},
	{":generateContent", way{api: Generate, format: gemini{}}},
	{":streamGenerateContent", way{api: Generate, format: gemini{}, stream: true}},
}

// route returns where a URL leads, if that is a call of a model.
func route(u *url.URL) (way, bool) {
	for _, w := range ways {
		if before, ok := strings.CutSuffix(u.Path, w.end); ok {
			w.model = modelIn(before)
			w.array = w.stream && u.Query().Get("alt") != "sse"
			return w.way, true
		}
	}
	return way{}, false
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
