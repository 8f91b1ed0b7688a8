package main

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// topProjects is how many projects the overview has, those that need attention. A filter and
// other orders ask the gateway, which knows all of them.
const topProjects = 200

func newTop() *cobra.Command {
	a := &adminFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch models and projects live, and pause them",
		Long: `Watch models and projects live: how much of which limit is used, who waits, what passes and
what is denied. Those whose calls are denied or wait come first.

  ↑ ↓      choose a row           enter  all limits of the row, and esc back
  tab      models or projects     s      sort: harm, pressure, name, waiting, denied, calls
  /        filter by name         p      pause the row or resume it, after a question
  q        quit

Where there is no terminal, the command prints the overview once.`,
		Example: "  ratelimit top\n  ratelimit top --json | jq '.projects[] | select(.waiting > 0)'",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			first, err := client.Overview(c.Context(), topProjects)
			if err != nil {
				return err
			}
			out := console.Of(c.OutOrStdout())
			in, ok := c.InOrStdin().(*os.File)
			switch {
			case asJSON:
				return out.JSON(first)
			case !out.Terminal() || !ok:
				return out.Lines(overviewLines(first, out.Columns()))
			}
			return watchTop(c.Context(), client, first, in, out)
		}),
	}
	a.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the overview once, as JSON")
	return c
}

// overviewLines returns an overview as it is printed where there is no terminal.
func overviewLines(o admin.Overview, width int) []string {
	lines := console.Sentences(width, aboutOverview(&o))
	if len(o.Silent) > 0 {
		lines = append(lines, bad(width, noAnswer(o.Silent))...)
	}
	lines = append(append(lines, ""), rowLines("model", o.Models, o.ModelCount, width)...)
	return append(append(lines, ""), rowLines("project", o.Projects, o.ProjectCount, width)...)
}

// watchTop shows the overview until the user quits.
func watchTop(ctx context.Context, client *admin.Client, first admin.Overview, in *os.File, out *console.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &top{ctx: ctx, client: client, out: out, overview: first, order: rowOrders[0]}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out.File()), tea.WithoutSignalHandler())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		followOverview(ctx, client, program.Send)
	}()
	_, err := program.Run()
	stop()
	<-followed
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // Ctrl-C, or the end of the process
	}
	return err
}

// The messages from the gateway.
type (
	snapshotMsg admin.Overview
	deltaMsg    admin.OverviewDelta
	lostMsg     struct{ err error }
)

// followOverview sends the overview and its changes. A gateway that has gone is asked again and again.
func followOverview(ctx context.Context, client *admin.Client, send func(tea.Msg)) {
	for {
		err := client.OverviewLive(ctx, topProjects, func(o *admin.Overview, d *admin.OverviewDelta) error {
			if o != nil {
				send(snapshotMsg(*o))
			} else {
				send(deltaMsg(*d))
			}
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		send(lostMsg{err})
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnectAfter):
		}
	}
}
