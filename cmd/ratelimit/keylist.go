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

// listedKey is a key of the list.
type listedKey struct {
	keys.Key
	LastUsed time.Time `json:"last_used,omitzero"` // the beginning of the hour, or of the day if that is long ago
}

func newKeyList(a *adminFlags) *cobra.Command {
	var asJSON bool
	var of, state string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the ids of keys and their projects, not the keys themselves",
		Long: `List the ids of keys and their projects, not the keys themselves, and when each was used last
within 30 days. A running gateway answers, or with --state its state: a SQLite file, or a URL
of Redis.`,
		Example: `  ratelimit key list --project acme
  ratelimit key list --state ~/.core/ratelimits.db --json`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, args []string) error {
			show := func(all []listedKey) error {
				all = keysOf(all, of)
				out := console.Of(c.OutOrStdout())
				if asJSON {
					return out.JSON(all)
				}
				return out.Lines(keyLines(all, time.Now(), out.Columns()))
			}
			if state != "" {
				all, err := keysIn(c.Context(), state)
				if err != nil {
					return err
				}
				return show(all)
			}
			return a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
				all, err := client.Keys(c.Context())
				if err != nil {
					return err
				}
				return show(withLastUse(c.Context(), all, client.Usage))
			})(c, args)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&of, "project", "", "only keys of the project with this `PATH`, and of those below it")
	c.Flags().StringVar(&state, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	return c
}

// keysIn returns the keys that a state holds.
func keysIn(ctx context.Context, state string) ([]listedKey, error) {
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
	return withLastUse(ctx, ring.List(), func(ctx context.Context, q books.Query) (admin.UsageReport, error) {
		kept := hidden.Of[books.Keeper](s)
		sum, err := kept.ReadBooks(ctx, q)
		if err != nil {
			return admin.UsageReport{}, err
		}
		return gateway.NewUsageReport(q, sum, time.Now()), nil
	}), nil
}

// keysOf returns the keys of a project and of those below it; all of them if it is empty.
func keysOf(all []listedKey, project string) []listedKey {
	kept := []listedKey{}
	for _, k := range all {
		if project == "" || k.Project == project || strings.HasPrefix(k.Project, project+"/") {
			kept = append(kept, k)
		}
	}
	return kept
}

// withLastUse adds to keys when they were used last, as the books say: by the hour in the last day,
// by the day before. Without books, keys have no last use.
func withLastUse(ctx context.Context, all []keys.Key, usage func(context.Context, books.Query) (admin.UsageReport, error)) []listedKey {
	last := map[string]time.Time{}
	for _, words := range []books.Words{{By: "key,day", Since: "30d"}, {By: "key,hour", Since: "24h"}} {
		q, err := words.Query(time.Now())
		if err != nil {
			panic(err) // cannot happen: the words are constants
		}
		report, _ := usage(ctx, q)
		for _, row := range report.Rows {
			if row.Time.After(last[row.Key]) {
				last[row.Key] = row.Time
			}
		}
	}
	listed := make([]listedKey, len(all))
	for i, k := range all {
		listed[i] = listedKey{k, last[k.ID]}
	}
	return listed
}

// keyLines returns keys as a table for people.
func keyLines(all []listedKey, now time.Time, width int) []string {
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
func keyNotes(k listedKey, now time.Time) (notes string, style func(string) string) {
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
