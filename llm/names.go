package llm

import "strings"

// PlainName returns the one of a model's names by which limits know it, where its
// provider takes several for the same model: Gemini's with and without models/, Ollama's
// in any case, of the library and with the tag latest, Azure's deployments in any case,
// Bedrock's models and profiles by their ARNs.
func PlainName(p Provider, model string) string {
	switch p {
	case Gemini:
		return strings.TrimPrefix(model, "models/")
	case Ollama:
		return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(model), "library/"), ":latest")
	case Azure:
		return strings.ToLower(model)
	case Bedrock:
		return bareARN(model)
	}
	return model
}

// Undated returns the name of the model of which a name with a date at its end is one
// release, as OpenAI and Anthropic write them: gpt-4o of gpt-4o-2024-08-06,
// claude-sonnet-4 of claude-sonnet-4-20250514. Others stay as they are.
func Undated(model string) string {
	for _, date := range []string{"-0000-00-00", "-00000000"} {
		if at := len(model) - len(date); at > 0 && isLike(model[at:], date) {
			return model[:at]
		}
	}
	return model
}

// isLike reports whether a text has digits where a pattern has, and is the same
// otherwise.
func isLike(text, pattern string) bool {
	for i := range len(pattern) {
		digit := text[i] >= '0' && text[i] <= '9'
		if pattern[i] == '0' && !digit || pattern[i] != '0' && text[i] != pattern[i] {
			return false
		}
	}
	return true
}
