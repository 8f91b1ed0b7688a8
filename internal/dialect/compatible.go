package dialect

import (
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Compatible is any other server with OpenAI's API, such as vLLM or llama.cpp.
const Compatible llm.Provider = "compatible"

var _ = register(dialect{
	provider:    Compatible,
	modelFolder: "/engines/", // an old one of OpenAI's, which servers such as LiteLLM still have
	fields: []field{
		{name: "search_parameters", kind: fieldStored}, {name: "search_settings", kind: fieldStored}, {name: "enable_search", kind: fieldStored},
		{name: "extra_body", kind: fieldStored},
	},
	apiFields: map[API][]field{Chat: {nPredictOf}, Completions: {nPredictOf}},
	ownBound:  part{nPredictOf.name, nPredict},
	images:    &openAIImages,
	overhead:  templateOverhead,
	secretive: []string{"grok-4"},
	limitHeaders: []windowHeaders{{
		unit: llm.Requests, limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset", // OpenRouter's, and many others'
		per: func(d *dialect, w llm.Window, errorPer time.Duration) time.Duration {
			if errorPer > 0 {
				return errorPer
			}
			return d.plainPer(w)
		},
	}},
	common: commonNames{
		usage:   members{"prompt_cache_hit_tokens": count(cachedTokens)}, // DeepSeek's
		message: members{"reasoning_content": {role: roleReasoningContent}},
	},
	errorAPI:  Chat,
	ownServer: true,
	bucketPer: usualBucketPer,
	plainPer:  func(llm.Window) time.Duration { return 0 },
})

// templateOverhead is for the marks around messages, and for what the templates of open models say of the date and the
// like.
const templateOverhead = 128

// llama.cpp prefers n_predict to every other bound of an answer.
var (
	nPredict   = newBound()
	nPredictOf = field{name: "n_predict", kind: fieldNumber, setting: nPredict}
)
