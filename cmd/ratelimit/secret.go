package main

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"github.com/spf13/cobra"
)

// secretNames completes the ids of keys or tokens.
func secretNames(a *adminFlags, of admin.Secret) cobra.CompletionFunc {
	if of == admin.Token {
		return a.complete(tokenNames)
	}
	return a.complete(keyNames)
}

func newRotate(a *adminFlags, of admin.Secret) *cobra.Command {
	var grace span
	c := &cobra.Command{
		Use:     "rotate ID",
		Short:   fmt.Sprintf("Replace a %s by a new one", of),
		Example: fmt.Sprintf("  ratelimit %s rotate ID --grace 24h", of),
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			issued, err := client.Rotate(c.Context(), of, args[0], time.Duration(grace))
			if err != nil {
				return err
			}
			return showSecret(c, of, issued)
		}),
		ValidArgsFunction: secretNames(a, of),
	}
	c.Flags().Var(&grace, "grace", fmt.Sprintf("for how long the old %s stays valid, such as 12h or 7d (default: it and those before it end at once)", of))
	return c
}

func newRevoke(a *adminFlags, of admin.Secret) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:     "revoke ID",
		Short:   map[admin.Secret]string{admin.VirtualKey: "Revoke a key, so that it is not valid any more", admin.Token: "Revoke a token, and end the sessions that began with it"}[of],
		Example: fmt.Sprintf("  ratelimit %s revoke ID", of),
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			name := string(of) + " " + args[0]
			if err := f.confirm(c, "Revoke "+name+" for good?"); err != nil {
				return err
			}
			if err := client.Revoke(c.Context(), of, args[0]); err != nil {
				return err
			}
			return f.done(c, map[string]string{"revoked": args[0]}, name+" is not valid any more")
		}),
		ValidArgsFunction: secretNames(a, of),
	}
	f.flags(c)
	return c
}

// showSecret prints a new key or token to stdout, and what it is for to stderr.
func showSecret(c *cobra.Command, of admin.Secret, issued admin.IssuedKey) error {
	if until := issued.PreviousUntil; !until.IsZero() {
		fmt.Fprintf(c.ErrOrStderr(), "the old %s is valid until %s\n", of, until.Format(time.RFC3339))
	}
	about, scope := "", "all projects"
	if issued.Project != "" {
		scope = "project " + issued.Project
	}
	if of == admin.Token {
		about = fmt.Sprintf(" (%s), %s", issued.Name, issued.Role)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s %s%s of %s, %s; it is not shown again:\n", of, issued.ID, about, scope, expiry(issued.Expires))
	_, err := fmt.Fprintln(c.OutOrStdout(), issued.Secret)
	return err
}
