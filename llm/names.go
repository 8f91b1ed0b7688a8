package llm

import "strings"

// PlainName returns the one of a model's names by which limits know it, where its
// provider takes several for the same model: Gemini's with and without models/, Ollama's
// in any case, of the library and with the tag latest, Azure's deployments in any case.
func PlainName(p Provider, model string) string {
	switch p {
	case Gemini:
		return strings.TrimPrefix(model, "models/")
	case Ollama:
		return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(model), "library/"), ":latest")
	case Azure:
		return strings.ToLower(model)
	}
	return model
}
