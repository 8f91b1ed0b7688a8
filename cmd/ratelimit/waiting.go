package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

func newWaiting() *cobra.Command {
	a := &adminFlags{}
	var project, model string
	c := &cobra.Command{
		Use:   "waiting",
		Short: "Show which calls wait, for which limit, and until when",
		Long: `Show which calls wait in a gateway: since when, for which limit, their place in the queue, when
that limit would let them pass, and when they give up.`,
		Example: "  ratelimit waiting\n  ratelimit waiting --model gpt-6-luna --project acme",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			list, err := client.WaitingCalls(c.Context(), project, model)
			if err != nil {
				return err
			}
			return show(c, list, func(width int) []string { return waitingLines(list, time.Now(), width) })
		}),
	}
	a.flags(c)
	c.Flags().StringVar(&project, "project", "", "only calls of the project with this `PATH`, and of those below it")
	c.Flags().StringVar(&model, "model", "", "only calls of this `MODEL`")
	jsonFlag(c)
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	c.RegisterFlagCompletionFunc("model", a.completeFlag(modelNames))
	return c
}

// waitingLines returns the calls that wait as a table.
func waitingLines(list admin.WaitingList, now time.Time, width int) []string {
	if len(list.Waiting) == 0 {
		return []string{"no call waits"}
	}
	t := console.NewTable(console.Text("project").ShortenedAtStart(12), console.Text("model").Shortened(12), console.Number("waits"), console.Text("for").Shortened(20),
		console.Number("place"), console.Number("passes in"), console.Number("gives up"), console.Number("tokens").Leaves(2), console.Text("id").Leaves(1))
	for _, w := range list.Waiting {
		waitsFor := "earlier calls"
		switch {
		case w.Owner != "":
			waitsFor = admin.LimitInWords(w.Limit) + " of " + w.Owner
		case w.Limit != "":
			waitsFor = admin.LimitInWords(w.Limit) + ", behind earlier calls" // which wait for the limit
		}
		t.Add(cmp.Or(w.Project, "(none)"), w.Model, fmt.Sprintf("%.1f s", w.Waited), waitsFor, fmt.Sprint(w.Position), until(w.PassesAt, now), until(w.Until, now), count(w.Tokens), w.ID)
	}
	lines := t.Lines(width)
	if list.More {
		lines = append(lines, console.Faint("(and more)"))
	}
	return lines
}

// until returns how long it is until a time, or a dash if that is not known.
func until(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.1f s", max(t.Sub(now).Seconds(), 0))
}
