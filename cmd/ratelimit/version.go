package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
)

// build describes how the program was built.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the source had changes beyond the revision
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		}
	}
	return b
}

func (b build) String() string { return fmt.Sprintf("ratelimit %s %s %s", b.Version, b.Go, b.Platform) }

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Example: "  ratelimit version --json",
		Args:    arguments,
		RunE: func(c *cobra.Command, _ []string) error {
			b := thisBuild()
			if asJSON {
				return console.Of(c.OutOrStdout()).JSON(b)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), b)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the revision")
	return c
}
