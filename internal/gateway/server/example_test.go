package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A gateway in a program of one's own, with a limit of one request a minute.
func ExampleRun() {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	defer provider.Close()
	c, err := config.Parse("gateway.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin: {listen: off}
state: memory
log: {level: off}
providers:
  openai: {base_url: %s, models: {gpt-4o: {max_rpm: 1}}}
defaults: {max_wait: 0s}
`, provider.URL))
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	started, ended := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return c, nil },
			Started: func(r server.Running) { started <- r },
		})
	}()
	url := fmt.Sprintf("http://%s/openai/v1/chat/completions", (<-started).Clients)
	for range 2 {
		resp, err := http.Post(url, "application/json", strings.NewReader(`{"model": "gpt-4o", "messages": []}`))
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 OK
	// 429 Too Many Requests
	// <nil>
}
