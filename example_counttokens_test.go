package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"dappco.re/go/core/go-ratelimit"
)

func ExampleTokenCounter() {
	// The server stands in for api.anthropic.com, which a TokenCounter without a BaseURL asks.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"input_tokens": 14}`)
	}))
	defer server.Close()

	counter := ratelimit.TokenCounter{
		Provider: ratelimit.ProviderAnthropic,
		APIKey:   "sk-ant-0123",
		BaseURL:  server.URL,
	}
	n, err := counter.Count(context.Background(), "claude-sonnet-4", "How many tokens is this?")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n, "tokens")
	// Output: 14 tokens
}
