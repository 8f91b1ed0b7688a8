package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

func newReload() *cobra.Command {
	a := &adminFlags{}
	var dryRun bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a gateway read its configuration again",
		Long: `Have a gateway read its configuration again, and show which limits that changes. Counters stay.
Limits that were set at run time are undone, for the projects and models that the file names,
unless they were set with --until. A file with a fault changes nothing: the command prints the
fault, and the exit code is 1.`,
		Example: "  ratelimit reload --dry-run\n  ratelimit reload",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			reload := client.Reload
			if dryRun {
				reload = client.PreviewReload
			}
			done, err := reload(c.Context())
			if err != nil {
				return err
			}
			return show(c, done, func(width int) []string {
				for _, warning := range done.Warnings {
					fmt.Fprintln(c.ErrOrStderr(), "warning:", warning)
				}
				return reloadLines(done.Changes, dryRun, width)
			})
		}),
	}
	a.flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show which limits would change")
	jsonFlag(c)
	return c
}

// reloadLines returns what a reload has changed, or would change.
func reloadLines(changes []admin.ReloadChange, dryRun bool, width int) []string {
	sentence := "the gateway has read its configuration again"
	if dryRun {
		sentence = "nothing is changed yet"
	}
	if len(changes) == 0 {
		return console.Sentences(width, sentence+": no limit changes")
	}
	t := console.NewTable(console.Text("of").ShortenedAtStart(16), console.Text("limit"), console.Text("before").Shortened(12), console.Text("").Leaves(1), console.Text("after").Shortened(12), console.Text("").Below())
	for _, change := range changes {
		of, note := change.Kind, ""
		if change.Name != "" {
			of += " " + change.Name
		}
		if change.SetAtRunTime {
			note = "was set at run time"
		}
		for _, field := range change.Changed {
			t.Add(of, field.Field, inWords(field.Before), "→", inWords(field.After), note)
			of, note = "", ""
		}
	}
	return append(t.Lines(width), console.Sentences(width, sentence)...)
}
