package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
)

func newServe() *cobra.Command {
	var file string
	var over config.Overrides
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway.

Without a configuration, the gateway listens at 127.0.0.1:8080 and counts in
~/.core/ratelimits.db. It guesses the quotas of some models of OpenAI, Anthropic and
Gemini until the providers report the real ones. A client's own key of the provider passes
through. ` + "`ratelimit check --example`" + ` prints a configuration with every field and its default.

The gateway first prints what it serves, and then a log of one JSON object a line, both to
stderr. It reads the configuration again when the file changes and at SIGHUP: counters
stay, and a file with a fault changes nothing. At SIGTERM and Ctrl-C it answers new
requests with 503 and lets streams finish; a second signal ends it at once.`,
		Example: `  ratelimit serve
  ratelimit serve --config gateway.yaml
  ratelimit serve --listen 127.0.0.1:9000 --state redis://127.0.0.1:6379/0`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), file, over, c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&file, "config", "", "read the configuration from `FILE` (default: none)")
	c.MarkFlagFilename("config", "yaml", "yml")
	listenFlags(c, &over)
	return c
}

// listenFlags adds the flags that override fields of the configuration.
func listenFlags(c *cobra.Command, over *config.Overrides) {
	c.Flags().StringVar(&over.Listen, "listen", "", "serve clients at `ADDRESS` (default 127.0.0.1:8080)")
	c.Flags().StringVar(&over.Admin, "admin", "", "serve the admin API at `ADDRESS`, or \"off\" (default 127.0.0.1:8081)")
	c.Flags().StringVar(&over.State, "state", "", "count in a SQLite `FILE`, at a redis:// URL, or in \"memory\" (default ~/.core/ratelimits.db)")
}

// serve runs a gateway until ctx ends.
func serve(ctx context.Context, file string, over config.Overrides, stderr io.Writer) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	level := new(slog.LevelVar)
	return server.Run(ctx, server.Options{
		Load:    func() (*config.Config, error) { return config.Load(file, over) },
		File:    file,
		Reload:  hangup,
		Log:     slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})),
		Level:   level,
		Version: thisBuild().Version,
		Started: func(r server.Running) { announce(stderr, r) },
	})
}
