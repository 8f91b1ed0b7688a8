package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider:    llm.Mistral,
	retryHeader: retryAfter,
	errorBody: func(f failure) object {
		return object{"object": "error", "message": f.message, "type": cmp.Or(f.code, openAICodes.of(f.status)), "param": nil, "code": strconv.Itoa(f.status)}
	},
	limits: func(h http.Header, at limitStates, _ limitTime) {
		for name, s := range map[string]limitState{"req": at.requests, "tokens": at.tokens} {
			if s.limit == 0 {
				continue
			}
			h.Set(fmt.Sprintf("X-Ratelimit-Limit-%s-Minute", name), strconv.Itoa(s.limit))
			h.Set(fmt.Sprintf("X-Ratelimit-Remaining-%s-Minute", name), strconv.Itoa(s.remaining))
		}
	},
})
