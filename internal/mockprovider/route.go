package mockprovider

import (
	"iter"
	"net/url"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

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
	api    llm.API
	format format
	model  string
	stream bool
	array  bool // a Gemini stream as an array
}

// routes are found by the ends of paths. Of two that fit a path, the longer one comes first.
var routes = []struct {
	end string
	endpoint
}{
	{"/api/chat", endpoint{api: llm.OllamaChat, format: ollama{chat: true}}},
	{"/api/generate", endpoint{api: llm.OllamaGenerate, format: ollama{}}},
	{"/v2/chat", endpoint{api: llm.CohereChat, format: cohereChat{}}},
	{"/v2/embed", endpoint{api: llm.CohereEmbed, format: cohereEmbed{}}},
	{"/v2/rerank", endpoint{api: llm.CohereRerank, format: cohereRerank{}}},
	{"/converse", endpoint{api: llm.Converse, format: converse{}}},
	{"/converse-stream", endpoint{api: llm.Converse, format: converse{}, stream: true}},
	{"/invoke", endpoint{api: llm.Invoke, format: invoke{}}},
	{"/invoke-with-response-stream", endpoint{api: llm.Invoke, format: invoke{}, stream: true}},
	{"/chat/completions", endpoint{api: llm.Chat, format: chat{}}},
	{"/completions", endpoint{api: llm.Completions, format: completions{}}},
	{"/responses", endpoint{api: llm.Responses, format: responses{}}},
	{"/embeddings", endpoint{api: llm.Embeddings, format: embeddings{}}},
	{"/messages", endpoint{api: llm.Messages, format: messages{}}},
	{":generateContent", endpoint{api: llm.Generate, format: gemini{}}},
	{":streamGenerateContent", endpoint{api: llm.Generate, format: gemini{}, stream: true}},
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
