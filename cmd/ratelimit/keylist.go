package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/project"
)

func newKeyList(a *adminFlags) *cobra.Command {
	var of, state string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the ids of keys and their projects, not the keys themselves",
		Long: `List the ids of keys and their projects, not the keys themselves, and when each was used last.
A running gateway answers, or with --state its state: a SQLite file, or a URL of Redis.`,
		Example: `  ratelimit key list --project acme
  ratelimit key list --state ~/.core/ratelimits.db --json`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, args []string) error {
			list := func(all []keys.Key, err error) error {
				if err != nil {
					return err
				}
				all = keysOf(all, of)
				return show(c, all, func(width int) []string { return keyLines(all, time.Now(), width) })
			}
			if state != "" {
				return list(keysIn(c.Context(), state))
			}
			return a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
				return list(client.Keys(c.Context()))
			})(c, args)
		},
	}
	jsonFlag(c)
	c.Flags().StringVar(&of, "project", "", "only keys of the project with this `PATH`, and of those below it")
	c.Flags().StringVar(&state, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	return c
}

// keysIn returns the keys that a state holds. If the books cannot be read, none has a last use.
func keysIn(ctx context.Context, state string) ([]keys.Key, error) {
	s, err := openState(state)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	keeper := hidden.Of[settings.Keeper](s)
	ring, err := keys.Open(keeper, func(int) {})
	if err != nil {
		return nil, err
	}
	defer ring.Close()
	all, kept := ring.List(), hidden.Of[books.Keeper](s)
	last, _ := gateway.LastUses(func(q books.Query) (*books.Summary, error) { return kept.ReadBooks(ctx, q) }, time.Now())
	for i := range all {
		all[i].LastUsed = last[all[i].ID]
	}
	return all, nil
}

// keysOf returns the keys of a project and of those below it; all of them if it is empty.
func keysOf(all []keys.Key, project string) []keys.Key {
	kept := []keys.Key{}
	for _, k := range all {
		if project == "" || k.Project == project || strings.HasPrefix(k.Project, project+"/") {
			kept = append(kept, k)
		}
	}
	return kept
}

// keyLines returns keys as a table for people.
func keyLines(all []keys.Key, now time.Time, width int) []string {
	if len(all) == 0 {
		return []string{"there are no keys"}
	}
	t := console.NewTable(console.Text("project").ShortenedAtStart(12), console.Text("id"), console.Text("name").Shortened(10), console.Text("last used"), console.Text("expires"),
		console.Text("created").Leaves(1), console.Text("").Below(), console.Text("limits").Below(), console.Text("models").Below())
	for _, k := range all {
		expires := day(k.Expires)
		if k.Expires.IsZero() {
			expires = "never"
		}
		limits := "-"
		if k.Limit != (project.Limit{}) {
			limits = aboutLimit(k.Limit, unmarked)
		}
		notes, style := keyNotes(k, now)
		t.AddStyled(style, k.Project, k.ID, k.Name, lastUse(k.LastUsed, now), expires, day(k.Created), notes, limits, strings.Join(k.Models, ", "))
	}
	return t.Lines(width)
}

// keyNotes returns what is special about a key.
func keyNotes(k keys.Key, now time.Time) (notes string, style func(string) string) {
	var all []string
	if k.Paused {
		all, style = append(all, "paused"), console.Bad
	}
	if !k.Expires.IsZero() && !now.Before(k.Expires) {
		all, style = append(all, "expired"), console.Faint
	}
	if !k.PreviousUntil.IsZero() {
		all = append(all, "the old key is valid until "+k.PreviousUntil.Format(time.RFC3339))
	}
	return strings.Join(all, ", "), style
}

// day returns the day of a time, or a dash for none.
func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateOnly)
}

// lastUse returns an hour of the last day, or a day before.
func lastUse(t, now time.Time) string {
	if now.Sub(t) <= 25*time.Hour {
		return t.Format("2006-01-02 15h")
	}
	return day(t)
}
