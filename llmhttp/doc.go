// Package llmhttp limits the calls of LLM SDKs. It is an [http.RoundTripper], so
// whatever takes an [http.Client] can use it:
//
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{
//		Transport: llmhttp.New(nil, limiter),
//	}))
//
// Each call reserves what it is estimated to use, waits its turn, and is settled with what
// it has used. The transport reads that from the response while the caller reads it,
// streamed or not. What the provider says about its limits corrects the limiter: see
// [ratelimit.RateLimiter.Heed].
//
// A provider counts calls when they arrive, and some take longer to arrive than others:
// see [ratelimit.ModelQuota.Margin].
//
// The transport sends other requests than calls of a model unchanged.
package llmhttp
