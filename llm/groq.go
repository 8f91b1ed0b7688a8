package llm

import "time"

// Groq serves open models with OpenAI's API.
const Groq Provider = "groq"

var _ = register(dialect{
	provider:      Groq,
	hosts:         []string{"api.groq.com"},
	fields:        []field{{name: "reasoning_format", kind: fieldHiding, harmless: []string{`"parsed"`, `"raw"`}}},
	cachedIsFree:  true,
	reportsUsage:  always,
	leastAudio:    10,
	quotesAnswers: true,
	common:        commonNames{top: members{"x_groq": {members: members{"usage": commonUsage}}}},
	bucketPer: func(w Window) time.Duration {
		if w.Unit == Requests {
			return Day
		}
		return time.Minute
	},
})
