package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/reconcile"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/price"
)

// adminKeys are the variables with the keys of administrators.
var adminKeys = map[string]string{"openai": "OPENAI_ADMIN_KEY", "anthropic": "ANTHROPIC_ADMIN_KEY", "openrouter": "OPENROUTER_PROVISIONING_KEY"}

func newReconcile() *cobra.Command {
	a := &adminFlags{}
	words := books.Words{By: "day,model"}
	var source reconcile.Source
	var state, name string
	var asJSON bool
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare the books with what a provider says that it bills",
		Long: `Compare the books with what a provider says that it bills, by day and model, and name each
difference: calls past the gateway, calls that were not billed, estimated tokens, a tool that
was not counted, a changed price. The provider's own APIs for administrators are asked, with
the key in OPENAI_ADMIN_KEY, ANTHROPIC_ADMIN_KEY or OPENROUTER_PROVISIONING_KEY. The exit code
is 0 if there is no difference, and 3 if there is one. Days are those of UTC.`,
		Example: `  ratelimit reconcile --provider openai --since 7d
  ratelimit reconcile --provider anthropic --since 2026-11-01 --until 2026-11-08 --json`,
		Args: arguments,
		RunE: func(c *cobra.Command, args []string) error {
			if err := noEmptyFlags(c, args); err != nil {
				return err
			}
			if !slices.Contains(reconcile.Providers(), source.Provider) {
				return usageError{fmt.Errorf("--provider %q: it must be one of %s", source.Provider, strings.Join(reconcile.Providers(), ", "))}
			}
			if source.Key = os.Getenv(adminKeys[source.Provider]); source.Key == "" {
				return usageError{fmt.Errorf("%s is not set: it must be the key of an administrator at %s", adminKeys[source.Provider], source.Provider)}
			}
			now := time.Now()
			q, err := wholeDays(words, now)
			if err != nil {
				return usageError{err}
			}
			source.Since, source.Until = time.Unix(q.Since, 0), now
			if q.Until != 0 {
				source.Until = time.Unix(q.Until, 0)
			}
			show := func(r admin.UsageReport) error {
				return showDifferences(c, source, bookLines(&r, name), asJSON)
			}
			if name == "" {
				name = source.Provider
			}
			return a.withUsage(c, state, q, now, show)
		},
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&source.Provider, "provider", "", "whose bill: openai, anthropic or openrouter")
	f.StringVar(&name, "name", "", "the provider's `NAME` in the gateway's file (default that of --provider)")
	f.StringVar(&source.BaseURL, "base-url", "", "ask this `URL` in place of the provider's own")
	f.StringVar(&words.Since, "since", "7d", "from the day of this `TIME` on: 2026-11-01 or 7d")
	f.StringVar(&words.Until, "until", "", "before this `TIME` (default now)")
	f.StringVar(&state, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.MarkFlagRequired("provider")
	return c
}

// wholeDays returns a query of the books that begins with a day, since providers bill days.
func wholeDays(words books.Words, now time.Time) (books.Query, error) {
	q, err := words.Query(now)
	q.Since -= q.Since % books.Day
	return q, err
}

// bookLines returns what the books say of a provider's models, whose names begin with that of the provider.
func bookLines(r *admin.UsageReport, name string) (lines []reconcile.Line) {
	for _, row := range r.Rows {
		model, ok := strings.CutPrefix(row.Model, name+"/")
		if !ok {
			continue
		}
		lines = append(lines, reconcile.Line{
			Day: row.Time.UTC().Format(time.DateOnly), Model: model, Requests: row.Requests, Input: row.Input, Output: row.Output, Searches: row.WebSearches,
			Tools: row.WebSearches + row.FileSearches + row.Containers, Nanodollars: int64(row.Dollars),
		})
	}
	return lines
}

// showDifferences reads the bill, and prints how it differs from the books.
func showDifferences(c *cobra.Command, source reconcile.Source, lines []reconcile.Line, asJSON bool) error {
	bill, err := source.Read(c.Context())
	if err != nil {
		return err
	}
	found := reconcile.Compare(lines, bill, canonical(source.Provider))
	out := console.Of(c.OutOrStdout())
	switch {
	case asJSON:
		err = out.JSON(append([]reconcile.Difference{}, found...))
	case len(found) == 0:
		err = out.Lines([]string{"the books and the bill of " + source.Provider + " are the same"})
	default:
		t := console.NewTable(console.Text("day"), console.Text("model"), console.Text("why"), console.Text("difference"))
		for _, d := range found {
			t.Add(d.Day, d.Model, string(d.Kind), d.String())
		}
		err = out.Lines(t.Lines(out.Columns()))
	}
	if err == nil && len(found) > 0 {
		return errNo
	}
	return err
}

// canonical returns what finds the name by which the table of prices knows a model: providers bill its releases.
func canonical(provider string) func(model string) string {
	return func(model string) string {
		if found, ok := price.Known().Find(provider, model, time.Now()); ok && found.Model != "" {
			return found.Model
		}
		return model
	}
}
