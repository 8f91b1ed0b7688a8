package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

func newExplain() *cobra.Command {
	a := &adminFlags{}
	c := &cobra.Command{
		Use:   "explain REQUEST-ID",
		Short: "Explain why a request has passed or was denied",
		Long: `Explain why a request has passed or was denied: every limit that was asked, what was left of
it, what the call needed, and what would have to change. The answer to a request has its id in
the header X-Gateway-Request-Id. A gateway keeps only the last requests.`,
		Example: "  ratelimit explain ID\n  ratelimit tail --outcome denied   shows the ids of calls as they are denied",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			e, err := client.Explain(c.Context(), args[0])
			if problem, ok := errors.AsType[*admin.Problem](err); ok && problem.Status == http.StatusNotFound {
				return fmt.Errorf("%w; `ratelimit tail` shows the ids of requests as they come", err)
			}
			if err != nil {
				return err
			}
			return show(c, e, func(width int) []string { return explanationLines(e, width) })
		}),
	}
	a.flags(c)
	jsonFlag(c)
	return c
}

// explanationLines returns an explanation for people.
func explanationLines(e admin.Explanation, width int) []string {
	lines := []string{decisionLine(e.Decision, width), ""}
	lines = append(lines, console.Sentences(width, e.Sentence)...)
	for _, advice := range e.Advice {
		lines = append(lines, console.Wrap(console.Printable("- "+advice), width, "  ")...)
	}
	return append(lines, limitLines(e.Limits, e.Decision.Time.Add(time.Duration(e.Decision.Took*1e9)), width)...)
}
