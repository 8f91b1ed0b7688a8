package mockprovider

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider:    dialect.Groq,
	routes:      []route{{end: "/openai/v1/audio/transcriptions", endpoint: endpoint{api: dialect.Transcriptions, format: transcriptions{}}}},
	limits:      openAILimits,
	retryHeader: retryAfter,
	chat:        chatStyle{usageBesideEnd: "x_groq"},
	leastAudio:  10,
})
