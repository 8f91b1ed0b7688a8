package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

func newStatus() *cobra.Command {
	a := &adminFlags{}
	var asJSON, watch bool
	var stateAt string
	c := &cobra.Command{
		Use:   "status [PROJECT]",
		Short: "Show what models and projects use of their limits",
		Long: `Show what models use of their limits, and the twenty projects that most need attention; or
what a project and those below it use. A running gateway answers, or with --state its state: a
SQLite file, or a URL of Redis. If the gateway is not ready, the exit code is 3.`,
		Example: `  ratelimit status --watch
  ratelimit status acme
  ratelimit status --json | jq '.models[] | select(.paused_seconds > 0)'
  ratelimit status --state ~/.core/ratelimits.db
  RATELIMIT_ADMIN_TOKEN=… ratelimit status --admin https://gateway:8081`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, args []string) error {
			show := func(from statusSource) error {
				one := func(to func([]string) error) error { return showStatus(c, from, to, asJSON) }
				if len(args) > 0 {
					one = func(to func([]string) error) error { return showSubtree(c, from, args[0], to, asJSON) }
				}
				if watch {
					return watchStatus(c, one)
				}
				return one(console.NewScreen(console.Of(c.OutOrStdout())).Leave)
			}
			if stateAt != "" {
				from, err := openLimits(stateAt)
				if err != nil {
					return err
				}
				defer from.close()
				return show(from)
			}
			return a.run(func(_ *cobra.Command, client *admin.Client, _ []string) error { return show(client) })(c, args)
		},
	}
	a.flags(c)
	c.ValidArgsFunction = a.complete(projectNames)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	c.Flags().StringVar(&stateAt, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	return c
}

// statusSource is who says what is used: the client of a gateway, or a state.
type statusSource interface {
	State(ctx context.Context) (admin.State, error)
	Projects(ctx context.Context, below string) ([]admin.Project, error)
}

// watchStatus shows the status every second until the user presses Ctrl-C, which is no error.
func watchStatus(c *cobra.Command, show func(to func([]string) error) error) error {
	s := console.NewScreen(console.Of(c.OutOrStdout()))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := show(s.Show)
		if c.Context().Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, errNo) {
			return err
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func showStatus(c *cobra.Command, from statusSource, show func([]string) error, asJSON bool) error {
	state, err := from.State(c.Context())
	if err != nil {
		return err
	}
	if asJSON {
		err = console.Of(c.OutOrStdout()).JSON(state)
	} else {
		err = show(statusLines(state, console.Of(c.OutOrStdout()).Columns()))
	}
	if err == nil && !state.Ready {
		return errNo
	}
	return err
}
