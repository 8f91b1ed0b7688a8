package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

func newToken() *cobra.Command {
	a := &adminFlags{}
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list, rotate and revoke tokens of the admin API, each with a role",
		Long: `Make, list, rotate and revoke tokens of the admin API and of the dashboard, at a running
gateway. Each has a name, which the audit log shows, and a role:

  metrics   reads the metrics, and nothing else: for Prometheus
  viewer    sees everything
  operator  changes limits, pauses, and makes and revokes keys, too
  admin     may do everything: make and revoke tokens, reload, switch the mode

Viewers and operators can be bound to a project with --project: they see it and all below
it, and change what is below. A token is shown once, when it is made: alone on stdout,
so that it can be piped.`,
		Example: `  ratelimit token create prometheus --role metrics
  ratelimit token create "acme's team" --role operator --project acme --expires 90d
  ratelimit token revoke ID`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	a.flags(c)
	c.AddCommand(newTokenCreate(a), newTokenList(a), newRotate(a, admin.Token), newRevoke(a, admin.Token))
	return c
}

func newTokenCreate(a *adminFlags) *cobra.Command {
	var ask admin.NewToken
	var expires span
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token",
		Example: `  ratelimit token create prometheus --role metrics
  ratelimit token create "acme's team" --role operator --project acme --expires 90d`,
		Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			ask.Name, ask.TTL = args[0], admin.Seconds(expires)
			token, err := client.CreateToken(c.Context(), ask)
			if err != nil {
				return err
			}
			return showSecret(c, admin.Token, token)
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar((*string)(&ask.Role), "role", "", "metrics, viewer, operator or admin")
	c.Flags().StringVar(&ask.Project, "project", "", "bind the token to the project with this `PATH`, and to those below it (default: all projects)")
	c.Flags().Var(&expires, "expires", "after how long the token expires, such as 12h or 90d (default: never)")
	c.MarkFlagRequired("role")
	c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]cobra.Completion{"metrics", "viewer", "operator", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	return c
}

func newTokenList(a *adminFlags) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the names and roles of tokens, not the tokens themselves",
		Example: "  ratelimit token list",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			all, err := client.Tokens(c.Context())
			if err != nil {
				return err
			}
			return show(c, append([]keys.Key{}, all...), func(width int) []string { return tokenLines(all, time.Now(), width) })
		}),
	}
	jsonFlag(c)
	return c
}

// tokenLines returns tokens as a table for people.
func tokenLines(all []keys.Key, now time.Time, width int) []string {
	if len(all) == 0 {
		return []string{"there are no tokens but admin.token of the configuration, if it has one"}
	}
	t := console.NewTable(console.Text("name").Shortened(12), console.Text("role"), console.Text("project").ShortenedAtStart(12), console.Text("id"),
		console.Text("expires"), console.Text("created").Leaves(1), console.Text("").Below())
	for _, k := range all {
		expires := day(k.Expires)
		if k.Expires.IsZero() {
			expires = "never"
		}
		notes, style := keyNotes(k, now)
		t.AddStyled(style, k.Name, string(k.Role), cmp.Or(k.Project, "all"), k.ID, expires, day(k.Created), notes)
	}
	return t.Lines(width)
}

// tokenNames are the ids of the tokens.
func tokenNames(ctx context.Context, client *admin.Client, _ string) (found []cobra.Completion) {
	all, _ := client.Tokens(ctx)
	for _, k := range all {
		found = append(found, cobra.CompletionWithDesc(k.ID, k.Name))
	}
	return found
}
