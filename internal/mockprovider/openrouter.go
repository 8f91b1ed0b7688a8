package mockprovider

import (
	"net/http"
	"strconv"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider:    dialect.OpenRouter,
	retryHeader: retryAfter,
	errorBody: func(f failure) object {
		return object{"error": object{"code": f.status, "message": f.message, "metadata": object{"provider_name": "mock", "raw": f.message}}, "user_id": "user_mock"}
	},
	limits: func(h http.Header, at limitStates, l limitTime) {
		if l.failed && at.requests.limit > 0 {
			h.Set("X-RateLimit-Limit", strconv.Itoa(at.requests.limit))
			h.Set("X-RateLimit-Remaining", strconv.Itoa(at.requests.remaining))
			h.Set("X-RateLimit-Reset", strconv.FormatInt(l.now.Add(at.requests.reset).UnixMilli(), 10))
		}
	},
	chat: chatStyle{namesProvider: true, showsThoughts: true, reportsCost: true, usageUnasked: true},
})
