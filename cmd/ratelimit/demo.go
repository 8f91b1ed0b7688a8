package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
)

func newDemo() *cobra.Command {
	var over config.Overrides
	var length time.Duration
	c := &cobra.Command{
		Use:   "demo",
		Short: "See the gateway at work, without any key",
		Long: `See the gateway at work, without any key: a simulated provider, the gateway in front of
it, and five projects that call it over HTTP. A table shows for each project how many
calls pass, wait and are denied.

The gateway is a real one: while the demo runs, ` + "`ratelimit status`" + ` and curl work with it.`,
		Example: `  ratelimit demo
  ratelimit demo --for 2m --listen 127.0.0.1:0 --admin off`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			if length <= 0 {
				return usageError{fmt.Errorf("--for is %v: it must be more than 0", length)}
			}
			return demonstrate(c.Context(), over, length, c.OutOrStdout())
		},
	}
	listenFlags(c, &over)
	c.Flags().Lookup("state").Usage = "count in a SQLite `FILE`, at a redis:// URL, or in \"memory\" (default memory)"
	c.Flags().DurationVar(&length, "for", 30*time.Second, "how long the demo runs")
	return c
}

// The models of the demo, and their quotas.
const (
	large           = "demo-large"
	small           = "demo-small"
	largeConcurrent = 6
	largeRequests   = 600
	largeTokens     = 300_000
	smallRequests   = 120
	smallTokens     = 30_000
)

// The limits of two projects of the demo.
const (
	internRequests = 20
	reportsTokens  = 3_000
)

// demoConfig returns the configuration of the demo's gateway.
func demoConfig(provider string, over config.Overrides) (*config.Config, error) {
	over.State = cmp.Or(over.State, config.Memory)
	if _, err := config.Load("", over); err != nil { // so that a fault of a flag names the flag, and not a line of the text below
		return nil, err
	}
	text := fmt.Sprintf(`
listen: %q
admin: {listen: %q}
state: %q
providers:
  anthropic: {base_url: %[4]q}
  gemini: {base_url: %[4]q}
  local: {base_url: %[4]q}
  openai:
    base_url: %[4]q
    models:
      %s: {max_concurrent: %d, max_rpm: %d, max_tpm: %d}
      %s: {max_rpm: %d, max_tpm: %d}
projects:
  search: {weight: 3}
  chat: {weight: 1}
  batch: {weight: 1}
  reports: {tokens_per_minute: %d}
  intern: {requests_per_minute: %d, max_wait: 0s}
defaults: {max_wait: 5m}
server: {drain: 2s}
`, cmp.Or(over.Listen, "127.0.0.1:8080"), cmp.Or(over.Admin, "127.0.0.1:8081"), over.State, provider,
		large, largeConcurrent, largeRequests, largeTokens, small, smallRequests, smallTokens, reportsTokens, internRequests)
	return config.Parse("the demo's configuration", []byte(text))
}

// demonstrate runs the demo for the given time, or until ctx ends.
func demonstrate(ctx context.Context, over config.Overrides, length time.Duration, w io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("ratelimit: the demo's provider cannot listen: %w", err)
	}
	seen := newWitness()
	provider := &http.Server{Handler: seen, ReadHeaderTimeout: 10 * time.Second}
	go provider.Serve(listener)
	defer provider.Close()

	cfg, err := demoConfig("http://"+listener.Addr().String(), over)
	if err != nil {
		return err
	}
	started := make(chan server.Running, 1)
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		ended <- server.Run(serving, server.Options{
			Load:    func() (*config.Config, error) { return cfg, nil },
			Version: thisBuild().Version,
			Started: func(r server.Running) { started <- r },
		})
	}()
	var running server.Running
	select {
	case running = <-started:
	case err := <-ended:
		return err
	}
	demonstrating, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	b := &board{running: running, witness: seen, projects: demoProjects(), began: time.Now()}
	err = b.run(demonstrating, console.NewScreen(console.Of(w)))
	stop()
	return errors.Join(err, <-ended)
}
