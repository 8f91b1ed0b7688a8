// Command gateway shows the gateway in a Go program: a stand-in for the provider, a gateway in front of
// it with a limit of three requests a minute, and a client that makes five calls at the same moment.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/server"
	"dappco.re/go/core/go-ratelimit/mockprovider"
)

func main() {
	if err := show(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const file = `
listen: 127.0.0.1:0
admin: {listen: off}
state: memory
log: {level: off}
providers:
  openai:
    base_url: %s
    models:
      gpt-4o: {max_rpm: 3}
defaults: {max_wait: 0s}
`

func show(ctx context.Context, w io.Writer) error {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	defer provider.Close()
	c, err := config.Parse("gateway.yaml", fmt.Appendf(nil, file, provider.URL))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	started, ended := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return c, nil },
			Started: func(r server.Running) { started <- r },
		})
	}()
	select {
	case running := <-started:
		callTogether(w, "http://"+running.Clients.String()+"/openai/v1/chat/completions", 5)
	case err := <-ended:
		stop()
		return err
	}
	stop()
	return <-ended
}

// callTogether makes calls at the same moment, and prints how many were answered in which way.
func callTogether(w io.Writer, url string, n int) {
	var (
		mu       sync.Mutex
		statuses = map[string]int{}
		denial   string
		group    sync.WaitGroup
	)
	for range n {
		group.Go(func() {
			status, body := call(url)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			if strings.HasPrefix(status, "429") {
				denial = body
			}
		})
	}
	group.Wait()
	fmt.Fprintf(w, "%d calls on a limit of 3 a minute:\n", n)
	for status, count := range statuses {
		fmt.Fprintf(w, "  %s: %d\n", status, count)
	}
	fmt.Fprintf(w, "a denial says:\n  %s\n", denial)
}

func call(url string) (status, body string) {
	const request = `{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}`
	resp, err := http.Post(url, "application/json", strings.NewReader(request))
	if err != nil {
		return err.Error(), ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), ""
	}
	return resp.Status, string(text)
}
