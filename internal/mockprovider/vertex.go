package mockprovider

import "dappco.re/go/core/go-ratelimit/llm"

var _ = register(imitation{provider: llm.Vertex, errorBody: googleError})
