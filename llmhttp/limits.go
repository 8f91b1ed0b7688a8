package llmhttp

import (
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// ReadLimits returns what a provider's response says about its limits, for [ratelimit.RateLimiter.Heed]. Programs that do
// not use the transport call it. body is the body of an error, or nil.
func ReadLimits(resp *http.Response, body []byte) llm.Limits {
	provider := dialect.Compatible
	if resp.Request != nil {
		if e, ok := dialect.Recognize(resp.Request.Method, resp.Request.URL); ok {
			provider = e.Provider
		}
	}
	return dialect.ReadLimits(provider, resp.StatusCode, resp.Header, body, time.Now())
}
