package main

import (
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/gateway/admin"
)

func newStatus() *cobra.Command {
	a := &adminFlags{}
	var asJSON, watch bool
	c := &cobra.Command{
		Use:     "status [PROJECT]",
		Short:   "Show what models and projects use of their limits",
		Long:    "Show what models and projects use of their limits, at a running gateway;\nor what a project and those inside of it use.",
		Example: "  ratelimit status --watch\n  ratelimit status acme\n  ratelimit status --json | jq '.models[] | select(.paused_seconds > 0)'\n  RATELIMIT_ADMIN_TOKEN=… ratelimit status --admin https://gateway:8081",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			show := func(to func([]string) error) error { return showStatus(c, client, to, asJSON) }
			if len(args) > 0 {
				show = func(to func([]string) error) error { return showSubtree(c, client, args[0], to, asJSON) }
			}
			if watch {
				return watchStatus(c, show)
			}
			return show(console.NewScreen(console.Of(c.OutOrStdout())).Leave)
		}),
	}
	a.flags(c)
	c.ValidArgsFunction = a.complete(projectNames)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	return c
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
		if err != nil {
			return err
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func showStatus(c *cobra.Command, client *admin.Client, show func([]string) error, asJSON bool) error {
	state, err := client.State(c.Context())
	if err != nil {
		return err
	}
	if asJSON {
		return console.Of(c.OutOrStdout()).JSON(state)
	}
	return show(statusLines(state, console.Of(c.OutOrStdout()).Columns()))
}
