package llmhttp

import (
	"cmp"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// ReadLimits returns what a provider's response says about its limits, for [ratelimit.RateLimiter.Heed]. Programs that do
// not use the transport call it. body is the body of an error, or nil.
func ReadLimits(resp *http.Response, body []byte) llm.Limits {
	var provider llm.Provider
	if req := resp.Request; req != nil {
		provider = dialect.ProviderAt(req.URL.Hostname()) // of any request, such as one for a job
		if e, ok := dialect.Recognize(req.Method, req.URL); ok {
			provider = e.Provider
		}
	}
	return dialect.ReadLimits(cmp.Or(provider, dialect.Compatible), resp.StatusCode, resp.Header, body, time.Now())
}
