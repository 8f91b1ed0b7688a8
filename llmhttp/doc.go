// Package llmhttp limits the calls of LLM SDKs. It is an [http.RoundTripper], so
// whatever takes an [http.Client] can use it:
//
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{
//		Transport: llmhttp.New(nil, limiter),
//	}))
//
// Each call reserves what it is thought to use, waits its turn, and is settled with
// what it has used, which is read from the response while the caller reads it,
// streamed or not. What the provider says about its limits corrects the limiter:
// see [ratelimit.RateLimiter.Heed].
//
// A provider counts calls when they arrive, and some take longer to arrive than others:
// see [ratelimit.ModelQuota.Margin].
//
// Requests that are no calls of a model pass as they are: see [llm.Recognize].
package llmhttp
