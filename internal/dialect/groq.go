package dialect

import (
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Groq serves open models with OpenAI's API.
const Groq llm.Provider = "groq"

var _ = register(dialect{
	provider:      Groq,
	hosts:         []string{"api.groq.com"},
	fields:        []field{{name: "reasoning_format", kind: fieldHiding, harmless: []string{`"parsed"`, `"raw"`}}},
	cachedIsFree:  true,
	reportsUsage:  always,
	leastAudio:    10,
	quotesAnswers: true,
	common:        commonNames{top: members{"x_groq": {members: members{"usage": commonUsage}}}},
	bucketPer: func(w llm.Window) time.Duration {
		if w.Unit == llm.Requests {
			return llm.Day
		}
		return time.Minute
	},
})
