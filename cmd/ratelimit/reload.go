package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/gateway/admin"
)

func newReload() *cobra.Command {
	a := &adminFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a gateway read its configuration again",
		Long: `Have a gateway read its configuration again. Counters stay. A file with a fault changes
nothing: the command prints the fault, and the exit code is 1.`,
		Example: "  ratelimit reload",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			done, err := client.Reload(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return console.Of(c.OutOrStdout()).JSON(done)
			}
			for _, warning := range done.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", warning)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "the gateway has read its configuration again")
			return err
		}),
	}
	a.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
