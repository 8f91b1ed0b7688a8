package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A gateway is a handler: here it answers two calls of one project, which may make one a minute.
func Example() {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	defer provider.Close()
	cfg, err := config.Parse("gateway.yaml", fmt.Appendf(nil, `
state: memory
providers:
  openai: {base_url: %s, models: {gpt-4o: {max_rpm: 500}}}
projects:
  search: {requests_per_minute: 1, max_wait: 0s}
`, provider.URL))
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	server := httptest.NewServer(g) // package server listens with timeouts, and reloads
	defer server.Close()
	for range 2 {
		call, err := http.NewRequest("POST", server.URL+"/openai/v1/chat/completions", strings.NewReader(`{"model": "gpt-4o", "messages": []}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		call.Header.Set("X-Project-ID", "search")
		answer, err := server.Client().Do(call)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Body.Close()
		fmt.Println(answer.Status)
	}
	// Output:
	// 200 OK
	// 429 Too Many Requests
}
