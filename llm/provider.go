package llm

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// Provider is the company or server that serves a model, as far as the host in the URL shows.
type Provider string

const (
	OpenAI     Provider = "openai"
	Azure      Provider = "azure" // OpenAI's models in Azure deployments
	Anthropic  Provider = "anthropic"
	Gemini     Provider = "gemini" // Google's AI Studio, with its own API or its copy of OpenAI's
	Vertex     Provider = "vertex" // Gemini's API on Google Cloud
	Groq       Provider = "groq"
	Mistral    Provider = "mistral"
	OpenRouter Provider = "openrouter"
	Ollama     Provider = "ollama"
	Cohere     Provider = "cohere"
	Bedrock    Provider = "bedrock"    // Amazon Bedrock
	Compatible Provider = "compatible" // any other server with OpenAI's API, such as vLLM or llama.cpp
)

// API is the format of a request and of its response.
type API string

const (
	Chat           API = "chat"            // OpenAI's chat completions
	Responses      API = "responses"       // OpenAI's responses
	Completions    API = "completions"     // OpenAI's legacy completions
	Embeddings     API = "embeddings"      // OpenAI's embeddings
	Messages       API = "messages"        // Anthropic's messages
	Generate       API = "generate"        // Gemini's generateContent and streamGenerateContent
	OllamaChat     API = "ollama-chat"     // Ollama's /api/chat
	OllamaGenerate API = "ollama-generate" // Ollama's /api/generate
	CohereChat     API = "cohere-chat"     // Cohere's /v2/chat and /v1/chat
	CohereEmbed    API = "cohere-embed"    // Cohere's /v2/embed and /v1/embed
	CohereRerank   API = "cohere-rerank"   // Cohere's /v2/rerank and /v1/rerank
	Converse       API = "converse"        // Bedrock's converse and converse-stream
	Invoke         API = "invoke"          // Bedrock's invoke and invoke-with-response-stream, in each model's own format
	Interactions   API = "interactions"    // Gemini's interactions
	Conversations  API = "conversations"   // Mistral's conversations, which a model continues at once
)

// Generates reports whether answers of the API have output tokens. Embeddings and rankings are
// numbers: they cost input tokens alone.
func (a API) Generates() bool { return a != Embeddings && a != CohereEmbed && a != CohereRerank }

// Endpoint is what the URL of a request says about it.
type Endpoint struct {
	Provider Provider
	API      API
	Model    string // the model that the path names; empty where the body names it
	Stream   bool   // whether the path asks for a streamed response
}

// routes maps the last two words of a path to APIs. The first of them is empty where any word may
// stand there.
var routes = map[[2]string]API{
	{"", "completions"}:       Completions,
	{"chat", "completions"}:   Chat,
	{"agents", "completions"}: Chat, // Mistral's; the body names an agent, and no model
	{"", "embeddings"}:        Embeddings,
	{"", "responses"}:         Responses,
	{"responses", "compact"}:  Responses, // a model compacts a conversation
	{"v1", "messages"}:        Messages,  // those of an OpenAI thread are no call
	{"api", "chat"}:           OllamaChat,
	{"api", "generate"}:       OllamaGenerate,
	{"api", "embed"}:          Embeddings,
	{"v1", "chat"}:            CohereChat,
	{"v2", "chat"}:            CohereChat,
	{"v1", "embed"}:           CohereEmbed,
	{"v2", "embed"}:           CohereEmbed,
	{"v1", "rerank"}:          CohereRerank,
	{"v2", "rerank"}:          CohereRerank,
	{"", "interactions"}:      Interactions,
}

// Recognize reads the endpoint from the URL of a request. ok is false for every request that is not
// a call of a model in a format that this package reads: lists of models, counts of tokens, files,
// unknown APIs.
func Recognize(method string, u *url.URL) (e Endpoint, ok bool) {
	e, ok = recognize(method, u, ProviderAt(u.Hostname()))
	if ok && e.Provider == "" {
		_, _, deployment := modelIn(u.Path)
		e.Provider = providerOf(u.Hostname(), e.API, deployment)
	}
	return e, ok
}

// Recognize is the function Recognize for a URL whose server is known to be of the provider, whatever
// its host. Anthropic's API is Anthropic's, whichever provider serves it.
func (p Provider) Recognize(method string, u *url.URL) (e Endpoint, ok bool) {
	if e, ok = recognize(method, u, p); ok && e.API != Messages {
		e.Provider = p
	}
	return e, ok
}

// recognize reads the endpoint from the URL of a request to a provider. It leaves out the provider unless
// the path alone says whose API it is.
func recognize(method string, u *url.URL, p Provider) (e Endpoint, ok bool) {
	if method != http.MethodPost {
		return Endpoint{}, false
	}
	path := u.Path
	if u.RawPath != "" { // a segment contains an escaped slash or the like
		path = u.EscapedPath()
	}
	rest, last := cutLast(path)
	_, parent := cutLast(rest)
	parent, word := routeWord(u, parent), routeWord(u, last)
	switch word {
	case "converse", "converse-stream", "invoke", "invoke-with-response-stream":
		return callOfBedrock(u, rest, word)
	}
	if e.API = cmp.Or(routes[[2]string{parent, word}], routes[[2]string{"", word}]); e.API == "" {
		if p == Mistral && (word == "conversations" || parent == "conversations" || word == "restart" && inConversation(u, rest)) {
			return Endpoint{API: Conversations}, true
		}
		if e, ok = callOfModel(rest, unescapeSegment(u, last)); !ok {
			return Endpoint{}, false
		}
	}
	if e.API == Messages {
		e.Provider = Anthropic
	}
	if from, to, _ := modelIn(path); from < to {
		e.Model = unescapeSegment(u, path[from:to])
	}
	return e, true
}

// inConversation reports whether a path ends with a conversation of Mistral's.
func inConversation(u *url.URL, path string) bool {
	path, _ = cutLast(path)
	_, folder := cutLast(path)
	return routeWord(u, folder) == "conversations"
}

// cutLast cuts the last segment off a path. It ignores slashes at the end.
func cutLast(path string) (rest, last string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// maxRouteWord is the length of the longest word that Recognize knows.
const maxRouteWord = len("invoke-with-response-stream")

// routeWord returns a path segment in lower case, since some servers ignore case, or "" if it is
// too long to be a word that Recognize knows.
func routeWord(u *url.URL, segment string) string {
	if word := unescapeSegment(u, segment); len(word) <= maxRouteWord {
		return strings.ToLower(word)
	}
	return ""
}

// unescapeSegment undoes the percent-encoding of a segment of the path of u.
func unescapeSegment(u *url.URL, segment string) string {
	if u.RawPath == "" {
		return segment
	}
	plain, err := url.PathUnescape(segment)
	if err != nil {
		return segment
	}
	return plain
}

// callOfModel reads one of Google's paths, such as /v1beta/models/gemini-pro:generateContent.
// Vertex also has endpoints for tuned models, and serves Anthropic's models with Anthropic's API;
// AI Studio has tunedModels.
func callOfModel(path, last string) (e Endpoint, ok bool) {
	_, parent := cutLast(path)
	if parent != "models" && parent != "tunedModels" && parent != "endpoints" {
		return e, false
	}
	colon := strings.LastIndexByte(last, ':')
	if colon <= 0 {
		return e, false
	}
	e.Model = last[:colon]
	method := last[colon+1:]
	e.Stream = method == "streamGenerateContent" || method == "streamRawPredict"
	switch method {
	case "generateContent", "streamGenerateContent":
		e.API = Generate
	case "embedContent", "batchEmbedContents":
		e.API = Embeddings
	case "rawPredict", "streamRawPredict":
		e.API = rawAPIs[publisher(path)]
	}
	return e, e.API != ""
}

// rawAPIs are the APIs that Vertex hands on to the models of other companies, by their publishers.
var rawAPIs = map[string]API{"anthropic": Messages, "mistralai": Chat, "ai21": Chat}

// publisher returns the publisher of a model in a path of Vertex that ends with /publishers/NAME/models/,
// or "".
func publisher(path string) string {
	path, _ = cutLast(path)
	path, name := cutLast(path)
	if _, folder := cutLast(path); folder != "publishers" {
		return ""
	}
	return name
}

// callOfBedrock reads one of Bedrock's paths, such as /model/amazon.nova-pro-v1%3A0/converse.
// Everything between /model/ and the last segment is the name of the model: a name that is an ARN
// has slashes, escaped or not.
func callOfBedrock(u *url.URL, path, word string) (e Endpoint, ok bool) {
	from := afterFolder(path, "/model/")
	model := strings.Trim(unescapeSegment(u, path[from:]), "/")
	if from == 0 || model == "" {
		return e, false
	}
	e = Endpoint{Provider: Bedrock, API: Converse, Model: model, Stream: strings.HasSuffix(word, "-stream")}
	if strings.HasPrefix(word, "invoke") {
		e.API = Invoke
	}
	return e, true
}

// The path names the model below these folders: Azure's, and an old one of OpenAI's, which servers
// such as LiteLLM still have.
const (
	deploymentsFolder = "/openai/deployments/"
	enginesFolder     = "/engines/"
)

// modelIn returns the range of the path that names the model below one of these folders: everything
// up to the words of the API, since some servers have names with slashes. The range is 0, 0 if the
// path has no such folder. deployment reports whether the folder is Azure's.
func modelIn(path string) (from, to int, deployment bool) {
	from, deployment = afterFolder(path, deploymentsFolder), true
	if from == 0 {
		from, deployment = afterFolder(path, enginesFolder), false
	}
	if from == 0 {
		return 0, 0, false
	}
	rest, _ := cutLast(path)
	for _, word := range []string{"/chat/", "/extensions/"} {
		if at := len(rest) - len(word); at > 0 && strings.EqualFold(rest[at:], word) {
			rest = rest[:at+1]
		}
	}
	return from, max(from, len(strings.TrimRight(rest, "/"))), deployment
}

// afterFolder returns the index of the first byte behind a folder, whose case does not matter, or 0
// if the path does not have the folder.
func afterFolder(path, folder string) int {
	for i := range max(len(path)-len(folder), 0) {
		if path[i] == '/' && strings.EqualFold(path[i:i+len(folder)], folder) {
			return i + len(folder)
		}
	}
	return 0
}

// hosts maps the ends of host names to providers.
var hosts = []struct {
	end      string
	provider Provider
}{
	{"api.openai.com", OpenAI}, // eu.api.openai.com too
	{"openai.azure.com", Azure},
	{"cognitiveservices.azure.com", Azure},
	{"services.ai.azure.com", Azure},
	{"api.anthropic.com", Anthropic},
	{"generativelanguage.googleapis.com", Gemini},
	{"aiplatform.googleapis.com", Vertex},
	{"-aiplatform.googleapis.com", Vertex}, // us-central1-aiplatform.googleapis.com
	{"api.groq.com", Groq},
	{"mistral.ai", Mistral}, // api. and codestral.
	{"openrouter.ai", OpenRouter},
	{"api.cohere.com", Cohere},
	{"api.cohere.ai", Cohere},
}

// ofBedrock reports whether a host is one of Bedrock's, such as
// bedrock-runtime.us-east-1.amazonaws.com.
func ofBedrock(host string) bool {
	return strings.HasPrefix(host, "bedrock-") && (strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn"))
}

// ProviderAt returns the provider whose server has this host name, or "" if the host is not known.
func ProviderAt(host string) Provider {
	host = strings.TrimSuffix(host, ".")
	for _, h := range hosts {
		before := len(host) - len(h.end)
		if before < 0 || !strings.EqualFold(host[before:], h.end) {
			continue
		}
		if before == 0 || h.end[0] == '-' || host[before-1] == '.' {
			return h.provider
		}
	}
	if ofBedrock(host) {
		return Bedrock
	}
	return ""
}

func providerOf(host string, api API, deployment bool) Provider {
	if api == Messages {
		return Anthropic // whatever the host
	}
	if known := ProviderAt(host); known != "" {
		return known
	}
	switch {
	case deployment:
		return Azure
	case api == Generate || api == Interactions:
		return Gemini
	case api == OllamaChat || api == OllamaGenerate:
		return Ollama
	case api == CohereChat || api == CohereEmbed || api == CohereRerank:
		return Cohere
	}
	return Compatible
}
