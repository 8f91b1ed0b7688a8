package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/price"
)

// UsageReport is what was used in some time.
type UsageReport struct {
	Since time.Time  `json:"since"`
	Until time.Time  `json:"until"`
	By    []string   `json:"by"`   // what the rows are grouped by
	Rows  []UsageRow `json:"rows"` // in the order of By
	Total UsageSum   `json:"total"`
}

// UsageRow is what was used by a project, of a model, with a key, in an hour or on a day: by as many
// of these as the report is grouped by.
type UsageRow struct {
	Time    time.Time `json:"time,omitzero"` // when the hour or day began
	Project string    `json:"project,omitempty"`
	Model   string    `json:"model,omitempty"`
	Key     string    `json:"key,omitempty"` // the virtual key's id
	UsageSum
}

// UsageSum is how much was used.
type UsageSum struct {
	Requests   int64        `json:"requests"` // calls that were sent to a provider
	Input      int64        `json:"input_tokens"`
	Cached     int64        `json:"cached_tokens"`      // the part of Input that was read from a cache
	CacheWrite int64        `json:"cache_write_tokens"` // the part of Input that was written to a cache
	Output     int64        `json:"output_tokens"`
	Reasoning  int64        `json:"reasoning_tokens"` // the part of Output that is reasoning
	Dollars    price.Amount `json:"dollars"`
	Denied     int64        `json:"denied"` // calls that were denied, which are not among Requests
	Waited     int64        `json:"waited"` // the part of Requests that has waited in line
	WaitTime   float64      `json:"waited_seconds"`
}

// NewUsageReport returns the answer to a query.
func NewUsageReport(q books.Query, s *books.Summary, now time.Time) UsageReport {
	r := UsageReport{Since: time.Unix(q.Since, 0).UTC(), Until: now.UTC().Truncate(time.Second), By: []string{}, Rows: make([]UsageRow, len(s.Rows)), Total: usageSum(&s.Total)}
	if q.Until != 0 {
		r.Until = time.Unix(q.Until, 0).UTC()
	}
	dated := false
	for _, d := range q.By {
		r.By = append(r.By, string(d))
		dated = dated || d == books.ByHour || d == books.ByDay
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		r.Rows[i] = UsageRow{Project: row.Project, Model: row.Model, Key: row.Owner.Key, UsageSum: usageSum(&row.Amounts)}
		if dated {
			r.Rows[i].Time = time.Unix(row.At, 0).UTC()
		}
	}
	return r
}

func usageSum(a *books.Amounts) UsageSum {
	return UsageSum{
		Requests:   a[books.Requests],
		Input:      a[books.Input],
		Cached:     a[books.Cached],
		CacheWrite: a[books.CacheWrite],
		Output:     a[books.Output],
		Reasoning:  a[books.Reasoning],
		Dollars:    price.Amount(a[books.Nanodollars]),
		Denied:     a[books.Denied],
		Waited:     a[books.Waited],
		WaitTime:   time.Duration(a[books.WaitTime]).Seconds(),
	}
}

func (a *Admin) usage(r *http.Request) (any, error) {
	given, err := parameters(r, "by", "since", "until", "project", "depth")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	q, err := books.Words{
		By: given.Get("by"), Since: given.Get("since"), Until: given.Get("until"), Project: given.Get("project"), Depth: given.Get("depth"),
	}.Query(now)
	if err != nil {
		return nil, invalid(err)
	}
	sum, err := a.gateway.Usage(r.Context(), q)
	switch {
	case errors.Is(err, gateway.ErrNoBooks):
		return nil, problemf(http.StatusNotFound, "the gateway keeps no books: its configuration says books: off")
	case errors.Is(err, books.ErrTooMany):
		return nil, invalid(err)
	case err != nil:
		return nil, err
	}
	return NewUsageReport(q, sum, now), nil
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
