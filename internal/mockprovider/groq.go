package mockprovider

import "dappco.re/go/core/go-ratelimit/llm"

var _ = register(imitation{
	provider:    llm.Groq,
	limits:      openAILimits,
	retryHeader: retryAfter,
	chat:        chatStyle{usageBesideEnd: "x_groq"},
})
