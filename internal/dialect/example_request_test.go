package dialect_test

import (
	"fmt"
	"net/url"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

func ExampleEndpoint_Read() {
	u, _ := url.Parse("https://api.openai.com/v1/chat/completions")
	endpoint, ok := dialect.Recognize("POST", u)
	if !ok {
		return // no call of a model
	}
	body := []byte(`{"model":"gpt-4o","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"Why is the sky blue?"}]}`)
	request, err := endpoint.Read(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(request.Provider, request.Model, request.Prompt, request.MaxOutput)
	if asking, ok := request.AskUsage(body); ok {
		fmt.Printf("%s\n", slices.Concat(asking...)[:50])
	}
	// Output:
	// openai gpt-4o 12 100
	// {"stream_options":{"include_usage":true},"model":"
}
