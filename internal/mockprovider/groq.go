package mockprovider

import "dappco.re/go/core/go-ratelimit/llm"

var _ = register(imitation{
	provider:    llm.Groq,
	routes:      []route{{end: "/openai/v1/audio/transcriptions", endpoint: endpoint{api: llm.Transcriptions, format: transcriptions{}}}},
	limits:      openAILimits,
	retryHeader: retryAfter,
	chat:        chatStyle{usageBesideEnd: "x_groq"},
	leastAudio:  10,
})
