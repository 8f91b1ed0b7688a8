package dialect

import (
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Ollama is a server of one's own, with its own API or OpenAI's.
const Ollama llm.Provider = "ollama"

// The APIs of Ollama.
const (
	OllamaChat     API = "ollama-chat"     // Ollama's /api/chat
	OllamaGenerate API = "ollama-generate" // Ollama's /api/generate
)

var _ = register(dialect{
	provider: Ollama,
	protocols: []protocol{
		{
			api: OllamaChat, paths: []string{"api/chat"}, answers: ollamaTop,
			fields: ollamaSettings, streamsByDefault: true, refuse: refuseOllama,
			bounds: []setting{numPredict}, boundObject: "options", boundName: "num_predict",
		},
		{
			api: OllamaGenerate, paths: []string{"api/generate"}, answers: ollamaTop,
			fields: ollamaSettings, streamsByDefault: true, messageIn: "prompt", refuse: refuseOllama,
			bounds: []setting{numPredict}, boundObject: "options", boundName: "num_predict",
		},
	},
	paths: map[string]API{"api/embed": Embeddings},
	fields: []field{
		{name: "template", kind: fieldTexts}, {name: "context", kind: fieldTexts}, {name: "images", kind: fieldImages}, {name: "format", kind: fieldAll},
	},
	promptKeys: map[string]keyKind{"images": keyImage},
	common: commonNames{
		top:     members{"prompt_eval_count": count(ollamaPrompt), "eval_count": count(ollamaOutput), "thinking": textNode},
		message: members{"thinking": textNode},
	},
	usage:     usageRules{input: ollamaPrompt, output: ollamaOutput, ends: ollamaDone},
	errorAPI:  OllamaChat,
	ownServer: true,
	names: nameRules{same: []nameRule{
		strings.ToLower, after("http://"), after("https://"), after("registry.ollama.ai/"), after("library/"), upTo("@"), without(":latest"),
	}},
})

// The numbers that Ollama alone reports.
var (
	ollamaPrompt = newNumber()
	ollamaOutput = newNumber()
	ollamaDone   = newNumber() // reported in the last piece of an answer alone
)

// ollamaTop is a whole response, or a piece of one.
var ollamaTop = extend(commonTop, members{"done": {role: roleNumber, number: ollamaDone, written: asMark}})

var (
	numPredict     = newBound()
	ollamaSettings = slices.Concat(streamFields, []field{{name: "options", kind: fieldObject, parts: []part{{"num_predict", numPredict}}}})
)

// refuseOllama returns the body of a refusal in Ollama's form.
func refuseOllama(_ Endpoint, r Refusal, fault object) object {
	fault["error"] = r.Message
	delete(fault, "message")
	return fault
}
