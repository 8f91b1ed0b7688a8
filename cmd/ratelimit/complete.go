package main

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// completionTimeout is how long the shell's user waits for completions at most.
const completionTimeout = 2 * time.Second

// maxCompletions is how many names a completion has at most.
const maxCompletions = 200

// names returns what a word may be completed to, with descriptions.
type names func(ctx context.Context, client *admin.Client, word string) []cobra.Completion

// keyNames are the ids of the gateway's keys.
func keyNames(ctx context.Context, client *admin.Client, _ string) (found []cobra.Completion) {
	all, _ := client.Keys(ctx)
	for _, k := range all {
		found = append(found, cobra.CompletionWithDesc(k.ID, k.Project))
	}
	return found
}

// projectNames are the paths of the projects that the gateway knows.
func projectNames(ctx context.Context, client *admin.Client, word string) (found []cobra.Completion) {
	rows, _ := client.OverviewProjects(ctx, word, "name", 0, maxCompletions)
	for _, p := range rows.Projects {
		found = append(found, p.Name)
	}
	return found
}

// modelNames are the models that have a quota.
func modelNames(ctx context.Context, client *admin.Client, _ string) (found []cobra.Completion) {
	all, _ := client.Quotas(ctx)
	for _, m := range all {
		found = append(found, m.Name)
	}
	return found
}

// complete completes the first argument of a command with names of the gateway, if that is running.
func (a *adminFlags) complete(of names) cobra.CompletionFunc {
	flag := a.completeFlag(of)
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return flag(c, args, word)
	}
}

// completeFields completes the first argument with names of the gateway, and the others with fields.
func (a *adminFlags) completeFields(of names, fields fieldTypes) cobra.CompletionFunc {
	first := a.completeFlag(of)
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(c, args, word)
		}
		var found []cobra.Completion
		for _, name := range fields.names() {
			found = append(found, name+"=")
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeFlag completes the value of a flag.
func (a *adminFlags) completeFlag(of names) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		client, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		found := slices.DeleteFunc(of(ctx, client, word), func(each cobra.Completion) bool { return !plainWord(each) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// plainWord reports whether a completion is a word that a shell takes as it is, and no flag. Clients choose
// the names of projects: of $(id)a and $(id)b, bash would complete what they share, and run it.
func plainWord(c cobra.Completion) bool {
	name, _, _ := strings.Cut(c, "\t")
	return !strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+=,", r)
	})
}
