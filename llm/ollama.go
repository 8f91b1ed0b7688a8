package llm

import "strings"

// Ollama is a server of one's own, with its own API or OpenAI's.
const Ollama Provider = "ollama"

// The APIs of Ollama.
const (
	OllamaChat     API = "ollama-chat"     // Ollama's /api/chat
	OllamaGenerate API = "ollama-generate" // Ollama's /api/generate
)

var _ = register(dialect{
	provider: Ollama,
	protocols: []protocol{
		{api: OllamaChat, paths: []string{"api/chat"}, answers: ollamaTop},
		{api: OllamaGenerate, paths: []string{"api/generate"}, answers: ollamaTop},
	},
	paths: map[string]API{"api/embed": Embeddings},
	common: commonNames{
		top:     members{"prompt_eval_count": count(ollamaPrompt), "eval_count": count(ollamaOutput), "thinking": textNode},
		message: members{"thinking": textNode},
	},
	usage: usageRules{input: ollamaPrompt, output: ollamaOutput, ends: ollamaDone},
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
