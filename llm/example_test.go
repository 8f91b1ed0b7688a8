package llm_test

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/llm"
)

func ExampleTokenWeights() {
	cached, _ := llm.ParseWeight("0.1")
	weights := llm.TokenWeights{CachedInput: cached}
	input, output := weights.Count(llm.Tokens{Input: 1000, Cached: 800, Output: 50})
	fmt.Println(input, output)
	// Output: 280 50
}
