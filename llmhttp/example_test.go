package llmhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// Give this http.Client to whatever makes calls, and its calls are limited.
func Example() {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	defer provider.Close()

	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas: map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: llmhttp.New(nil, limiter)}

	ask := `{"model": "gpt-4o", "stream": true, "messages": [{"role": "user", "content": "Tell me a story."}]}`
	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(ask))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	stream, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	stats := limiter.Stats("gpt-4o")
	fmt.Println("events:", bytes.Count(stream, []byte("data:")))
	fmt.Println("tokens:", stats.TPM, "of", stats.MaxTPM)
	// Output:
	// events: 19
	// tokens: 23 of 30000
}

// With Reject, a call that is denied gets an answer like the provider's own.
func ExampleReject() {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	defer provider.Close()

	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas: map[string]ratelimit.ModelQuota{"claude-sonnet-4": {MaxRPM: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: llmhttp.New(nil, limiter, llmhttp.Reject())}
	for range 2 {
		ask := `{"model": "claude-sonnet-4", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello."}]}`
		resp, err := client.Post(provider.URL+"/v1/messages", "application/json", strings.NewReader(ask))
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		fmt.Printf("%s, Retry-After: %q\n", resp.Status, resp.Header.Get("Retry-After"))
	}
	// Output:
	// 200 OK, Retry-After: ""
	// 429 Too Many Requests, Retry-After: "60"
}
