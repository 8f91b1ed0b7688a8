package dialect_test

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

func ExampleEstimator() {
	request := dialect.Request{
		Endpoint: dialect.Endpoint{Provider: dialect.Anthropic, API: dialect.Messages, Model: "claude-sonnet-5-5"},
		Prompt:   1936, MaxOutput: 64_000, Answers: 1,
	}
	var estimator dialect.Estimator
	fmt.Printf("at first: %+v\n", estimator.Estimate("acme", &request))

	for range 64 {
		estimator.Learn("acme", &request, llm.Usage{Input: 2000, Cached: 1500, Output: 300, Exact: true})
	}
	fmt.Printf("later:    %+v\n", estimator.Estimate("acme", &request))
	// Output:
	// at first: {Input:2194 Output:3872 FreeInput:0 FreeOutput:0 Cached:0 CacheWrite:0 Reasoning:0}
	// later:    {Input:2000 Output:300 FreeInput:1500 FreeOutput:0 Cached:0 CacheWrite:0 Reasoning:0}
}
