package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// modes are what a gateway can do with calls beyond a limit.
var modes = []string{"enforce", "shadow"}

func newMode() *cobra.Command {
	a := &adminFlags{}
	var f changeFlags
	c := &cobra.Command{
		Use:   "mode [MODE]",
		Short: "Show or set whether a gateway denies calls: enforce or shadow",
		Long: `Show or set whether a gateway denies calls beyond a limit: enforce denies them, shadow lets all
pass, and says in its log, metrics and headers what it would have done. One project or model is
set by ` + "`ratelimit project set PROJECT mode=shadow`" + `.`,
		Example: "  ratelimit mode\n  ratelimit mode shadow",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			if len(args) == 0 {
				now, err := client.Gateway(c.Context())
				if err != nil {
					return err
				}
				return f.done(c, now, now.Mode)
			}
			if !slices.Contains(modes, args[0]) {
				return usageError{fmt.Errorf("MODE is %s: it must be enforce or shadow", message.Quote(args[0]))}
			}
			if err := f.confirm(c, "Set the mode of the whole gateway to "+args[0]+"?"); err != nil {
				return err
			}
			now, err := client.PatchGateway(c.Context(), admin.Patch{"mode": args[0]})
			if err != nil {
				return err
			}
			return f.done(c, now, "the mode of the gateway is "+now.Mode)
		}),
		ValidArgs: modes,
	}
	a.flags(c)
	f.flags(c)
	return c
}

// shadowNote says that limits of what has this mode deny nothing.
func shadowNote(mode string) []string {
	if mode == "shadow" {
		return []string{"shadow: its limits deny nothing"}
	}
	return nil
}
