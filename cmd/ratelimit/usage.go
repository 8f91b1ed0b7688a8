package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

func newUsage() *cobra.Command {
	a := &adminFlags{}
	words := books.Words{}
	var asJSON, asCSV bool
	var state string
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show what projects, models and keys have used, by hour and day",
		Long: `Show what projects, models and keys have used, by hour and day: requests, tokens, dollars,
calls that were denied, and calls that have waited. A running gateway answers, or with --state
its state: a SQLite file, or a URL of Redis. Days and hours are those of UTC.`,
		Example: `  ratelimit usage
  ratelimit usage --by project,model --since 2026-11-01 --csv
  ratelimit usage --by day --project acme/search --since 7d
  ratelimit usage --by project --depth 1 --state ~/.core/ratelimits.db`,
		Args: arguments,
		RunE: func(c *cobra.Command, args []string) error {
			if err := noEmptyFlags(c, args); err != nil {
				return err
			}
			now := time.Now()
			q, err := words.Query(now)
			if err != nil {
				return usageError{err}
			}
			if asJSON && asCSV {
				return usageError{errors.New("--json and --csv: it can be one of them")}
			}
			show := func(r admin.UsageReport) error { return printUsage(c.OutOrStdout(), r, asJSON, asCSV) }
			return a.withUsage(c, state, q, now, show)
		},
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&words.By, "by", "project", "group by some of project, model, key, and hour or day, separated by `COMMAS`")
	f.StringVar(&words.Since, "since", books.DefaultSince, "from this `TIME` on: 2026-11-01, 2026-11-01T15:00:00Z, 24h or 7d")
	f.StringVar(&words.Until, "until", "", "before this `TIME` (default now)")
	f.StringVar(&words.Project, "project", "", "only the project with this `PATH`, and those below it")
	f.StringVar(&words.Depth, "depth", "", "cut the paths of projects to this `NUMBER` of levels")
	f.StringVar(&state, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	f.BoolVar(&asCSV, "csv", false, "print CSV")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// withUsage calls show with the answer to a query of the books: of a state, or of a gateway if state is empty.
func (a *adminFlags) withUsage(c *cobra.Command, state string, q books.Query, now time.Time, show func(admin.UsageReport) error) error {
	if state != "" {
		report, err := usageOf(c.Context(), state, q, now)
		if err != nil {
			return err
		}
		return show(report)
	}
	return a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
		report, err := client.Usage(c.Context(), q)
		if err != nil {
			return err
		}
		return show(report)
	})(c, nil)
}

// usageOf returns what the books in a state say.
func usageOf(ctx context.Context, state string, q books.Query, now time.Time) (r admin.UsageReport, err error) {
	s, err := openState(state)
	if err != nil {
		return r, err
	}
	defer s.Close()
	kept := hidden.Of[books.Keeper](s)
	sum, err := kept.ReadBooks(ctx, q)
	if err != nil {
		return r, err
	}
	return gateway.NewUsageReport(q, sum, now), nil
}

// isRedis reports whether a state is the URL of a Redis.
func isRedis(state string) bool {
	return strings.HasPrefix(state, "redis://") || strings.HasPrefix(state, "rediss://")
}

// openState opens a state that exists.
func openState(state string) (store.Store, error) {
	if isRedis(state) {
		return redisstore.New(redisstore.Config{URL: state})
	}
	if _, err := os.Stat(state); err != nil {
		return nil, fmt.Errorf("there is no state at %s: it must be a SQLite file, or a URL that begins with redis:// or rediss://", state)
	}
	return sqlitestore.Open(state)
}

// printUsage writes a report as a table for people, as CSV or as JSON.
func printUsage(w io.Writer, r admin.UsageReport, asJSON, asCSV bool) error {
	switch {
	case asJSON:
		return console.Of(w).JSON(r)
	case asCSV:
		return r.WriteCSV(w)
	}
	return console.Of(w).Lines(usageLines(r, console.Of(w).Columns()))
}
