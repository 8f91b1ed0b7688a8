package admin

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// What the books say.
type (
	UsageReport = gateway.UsageReport
	UsageRow    = gateway.UsageRow
	UsageSum    = gateway.UsageSum
)

func (a *Admin) usage(r *http.Request) (any, error) {
	given, err := parameters(r, "by", "since", "until", "project", "depth", "format")
	if err != nil {
		return nil, err
	}
	q, err := books.Words{
		By: given.Get("by"), Since: given.Get("since"), Until: given.Get("until"), Project: given.Get("project"), Depth: given.Get("depth"),
	}.Query(time.Now())
	if err != nil {
		return nil, invalid(err)
	}
	format := cmp.Or(given.Get("format"), "json")
	if format != "json" && format != "csv" {
		return nil, problemf(http.StatusBadRequest, "format is %.40q: it must be json or csv", format)
	}
	report, err := a.report(r.Context(), q)
	if err == nil && format == "csv" {
		return csvFile{"usage.csv", report.WriteCSV}, nil
	}
	return report, err
}

// csvFile is an answer that browsers save as a file.
type csvFile struct {
	name  string
	write func(io.Writer) error
}

func (f csvFile) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	f.write(w) // writing fails only if the client has left
}

// report asks the books.
func (a *Admin) report(ctx context.Context, q books.Query) (UsageReport, error) {
	sum, err := a.gateway.Usage(ctx, q)
	switch {
	case errors.Is(err, gateway.ErrNoBooks):
		return UsageReport{}, problemf(http.StatusNotFound, "usage is not kept: the configuration has usage: off")
	case errors.Is(err, books.ErrTooMany):
		return UsageReport{}, invalid(err)
	case err != nil:
		return UsageReport{}, err
	}
	return gateway.NewUsageReport(q, sum, time.Now()), nil
}

// Usage returns what was used.
func (c *Client) Usage(ctx context.Context, q books.Query) (UsageReport, error) {
	w := q.Words()
	values := url.Values{}
	for name, word := range map[string]string{"by": w.By, "since": w.Since, "until": w.Until, "project": w.Project, "depth": w.Depth} {
		if word != "" {
			values.Set(name, word)
		}
	}
	return get[UsageReport](ctx, c, http.MethodGet, "/v1/usage?"+values.Encode(), nil)
}
