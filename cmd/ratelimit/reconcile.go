package main

import (
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/reconcile"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// adminKeys are the variables with the keys of administrators.
var adminKeys = map[string]string{"openai": "OPENAI_ADMIN_KEY", "anthropic": "ANTHROPIC_ADMIN_KEY", "openrouter": "OPENROUTER_PROVISIONING_KEY"}

func newReconcile() *cobra.Command {
	a := &adminFlags{}
	words := books.Words{By: "day,model"}
	var source reconcile.Source
	var state, name string
	var show howShown
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare the recorded usage with what a provider bills",
		Long: `Compare the recorded usage with what a provider bills, by day and model, and name each
difference: calls past the gateway, calls that were not billed, estimated tokens, a tool that
was not counted, a changed price. The provider's own APIs for administrators are asked, with
the key in OPENAI_ADMIN_KEY, ANTHROPIC_ADMIN_KEY or OPENROUTER_PROVISIONING_KEY. The exit code
is 0 if there is no difference, or none above --threshold, and 3 if there is one. Days are
those of UTC.`,
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
			if name == "" {
				name = source.Provider
			}
			if err := show.readThreshold(); err != nil {
				return usageError{err}
			}
			if show.threshold != "" && len(source.Keys) > 0 && source.Provider != "openai" {
				return usageError{fmt.Errorf("--threshold with --key: %s does not say what each key has cost, so that the dollars of the gateway's keys cannot be told from others: leave one of them out", source.Provider)}
			}
			return a.withUsage(c, state, q, now, func(r admin.UsageReport) error {
				return show.differences(c, source, bookLines(&r, name))
			})
		},
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&source.Provider, "provider", "", "whose bill: openai, anthropic or openrouter")
	f.StringVar(&name, "name", "", "the provider's `NAME` in the gateway's file (default that of --provider)")
	f.StringVar(&source.BaseURL, "base-url", "", "ask this `URL` in place of the provider's own")
	f.StringSliceVar(&source.Keys, "key", nil, "the provider's `ID` of a key that the gateway has: what other keys use is named")
	f.StringVar(&show.threshold, "threshold", "", "how far usage and bill may differ, in `DOLLARS` or in percent of the bill: 0.50 or 2%")
	f.StringVar(&show.metrics, "metrics", "", "write the difference to this `FILE`, as Prometheus reads it")
	f.StringVar(&words.Since, "since", "7d", "from the day of this `TIME` on: 2026-11-01 or 7d")
	f.StringVar(&words.Until, "until", "", "before this `TIME` (default now)")
	f.StringVar(&state, "state", "", "read the state at this `PATH` or URL of Redis, and do not ask a gateway")
	f.BoolVar(&show.json, "json", false, "print JSON")
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
			Day: row.Time.UTC().Format(time.DateOnly), Model: model, Requests: row.Requests, Input: row.Input, Output: row.Output, Nanodollars: int64(row.Dollars),
			Units: llm.Units{
				llm.Images: row.Images, llm.AudioSeconds: row.AudioSeconds, llm.Characters: row.Characters,
				llm.WebSearches: row.WebSearches, llm.FileSearches: row.FileSearches, llm.Containers: row.Containers,
			},
		})
	}
	return lines
}

// howShown is how differences are shown, and which of them matter.
type howShown struct {
	json      bool
	metrics   string       // a file; empty: none is written
	threshold string       // as on the command line; empty: every difference matters
	amount    price.Amount // dollars, or percent
	percent   bool
}

// readThreshold reads the threshold.
func (h *howShown) readThreshold() (err error) {
	if h.threshold == "" {
		return nil
	}
	number, percent := strings.CutSuffix(h.threshold, "%")
	h.percent = percent
	if h.amount, err = price.Parse(number); err != nil {
		return fmt.Errorf("--threshold %q: it must be dollars, as in 0.50, or percent of the bill, as in 2%%", h.threshold)
	}
	return nil
}

// exceeded reports whether the books are further from the bill than the threshold.
func (h *howShown) exceeded(g reconcile.Gap) bool {
	switch {
	case h.threshold == "":
		return true
	case !h.percent:
		return g.Off > int64(h.amount)
	}
	off, allowed := big.NewInt(g.Off), big.NewInt(g.Bill)
	off.Mul(off, big.NewInt(100*int64(price.Dollar)))
	return off.Cmp(allowed.Mul(allowed, big.NewInt(int64(h.amount)))) > 0
}

// differences reads the bill, and prints how it differs from the books.
func (h *howShown) differences(c *cobra.Command, source reconcile.Source, lines []reconcile.Line) error {
	bill, err := source.Read(c.Context())
	if err != nil {
		return err
	}
	found := reconcile.Compare(lines, bill, canonical(source.Provider))
	gap := reconcile.GapOf(lines, bill)
	out := console.Of(c.OutOrStdout())
	switch {
	case h.json:
		err = out.JSON(append([]reconcile.Difference{}, found...))
	case len(found) == 0:
		err = out.Lines([]string{"usage and the bill of " + source.Provider + " are the same"})
	default:
		t := console.NewTable(console.Text("day"), console.Text("model"), console.Text("why"), console.Text("difference"))
		for _, d := range found {
			t.Add(d.Day, d.Model, string(d.Kind), d.String())
		}
		err = out.Lines(t.Lines(out.Columns()))
	}
	if err == nil && h.metrics != "" {
		err = writeMetrics(h.metrics, source.Provider, found, gap)
	}
	if err == nil && len(found) > 0 && h.exceeded(gap) {
		return errNo
	}
	return err
}

// writeMetrics writes a file for the collector of text files of Prometheus' node exporter, all of it at once.
func writeMetrics(path, provider string, found []reconcile.Difference, gap reconcile.Gap) error {
	var b strings.Builder
	gauge := func(name, help string, value any) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s gauge\n%[1]s{provider=%[3]q} %[4]v\n", name, help, provider, value)
	}
	gauge("ratelimit_reconcile_difference_dollars", "How far usage is from the bill, added up by days.", price.Amount(gap.Off).Decimal())
	gauge("ratelimit_reconcile_billed_dollars", "What the provider bills.", price.Amount(gap.Bill).Decimal())
	gauge("ratelimit_reconcile_differences", "How many differences there are.", len(found))
	gauge("ratelimit_reconcile_timestamp_seconds", "When usage was compared with the bill.", time.Now().Unix())
	next := path + ".tmp"
	if err := os.WriteFile(next, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("ratelimit: the metrics cannot be written: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("ratelimit: the metrics cannot be written: %w", err)
	}
	return nil
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
