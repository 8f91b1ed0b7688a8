package dialect

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Vertex is Gemini's API on Google Cloud.
const Vertex llm.Provider = "vertex"

var _ = register(dialect{
	provider: Vertex,
	hosts:    []string{"aiplatform.googleapis.com", "-aiplatform.googleapis.com"}, // us-central1-aiplatform.googleapis.com
	names: nameRules{
		same:    []nameRule{after("publishers/"), after("google/"), after("anthropic/"), after("models/"), claude},
		variant: slices.Concat([]nameRule{upTo("@")}, geminiVariants, []nameRule{without("-0")}),
	},
	tierPrefix:     "ON_DEMAND_",
	freeEnds:       []string{":fetchPredictOperation"},
	images:         &geminiImages,
	errorAPI:       Generate,
	keyHeader:      authorization,
	hidesReasoning: true,
	reportsUsage:   func(inPath bool) bool { return inPath }, // Mistral's models, which would refuse to be asked
})
