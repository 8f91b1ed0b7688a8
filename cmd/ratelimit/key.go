package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func newKey() *cobra.Command {
	a := &adminFlags{}
	c := &cobra.Command{
		Use:   "key",
		Short: "Make, list, change, pause, rotate and revoke the virtual keys of projects",
		Long: `Make, list, change, pause, rotate and revoke the virtual keys of projects, at a running
gateway.

A client sends a virtual key as it would send the provider's key. The key is shown once,
when it is made: alone on stdout, so that it can be piped; everything else goes to stderr.`,
		Example: `  ratelimit key create search --name "search in staging" --expires 30d
  ratelimit key create search | vault kv put secret/search key=-
  ratelimit key rotate ID --grace 24h`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	a.flags(c)
	c.AddCommand(newKeyCreate(a), newKeyList(a), newKeyChange(a), newPause(a, virtualKeys, true), newPause(a, virtualKeys, false), newRotate(a, admin.VirtualKey), newRevoke(a, admin.VirtualKey))
	return c
}

func newKeyCreate(a *adminFlags) *cobra.Command {
	var k admin.NewKey
	var expires span
	c := &cobra.Command{
		Use:   "create PROJECT",
		Short: "Make a key for a project",
		Example: `  ratelimit key create search --name "search in staging" --expires 30d
  ratelimit key create acme/search --dollars-per-day 5 --models 'gpt-6-luna*'`,
		Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			k.Project, k.TTL = args[0], admin.Seconds(expires)
			key, err := client.CreateKey(c.Context(), k)
			if err != nil {
				return err
			}
			warnOfKey(c, client, args[0])
			return showSecret(c, admin.VirtualKey, key)
		}),
		ValidArgsFunction: a.complete(projectNames),
	}
	c.Flags().StringVar(&k.Name, "name", "", "what the key is for")
	c.Flags().Var(&expires, "expires", "after how long the key expires, such as 12h or 30d (default: never)")
	c.Flags().StringSliceVar(&k.Models, "models", nil, "names or patterns of the models that the key may call (default: all that its project may)")
	limitFlags(c, &k.Limit)
	return c
}

// warnOfKey warns the user who has made a key of two surprises: that the gateway takes no
// keys, and that the project, which may be misspelt, has only the default limit.
func warnOfKey(c *cobra.Command, client *admin.Client, id string) {
	state, err := client.State(c.Context())
	if err != nil {
		return // the key is made all the same
	}
	if state.Keys == config.KeysOff {
		fmt.Fprintln(c.ErrOrStderr(), "this gateway refuses all such keys until its configuration says keys: required")
	}
	for _, p := range state.Projects {
		if p.ID == id && !p.Own {
			fmt.Fprintf(c.ErrOrStderr(), "project %s has no limit of its own, but the default: %s\n", id, aboutLimit(p.Limit, unmarked))
		}
	}
}

// expiry returns when a key expires, as the end of a sentence.
func expiry(t time.Time) string {
	if t.IsZero() {
		return "which does not expire"
	}
	return "which expires " + t.Format(time.RFC3339)
}
