package mockprovider

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{provider: dialect.Vertex, errorBody: googleError})
