package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/price"
)

// History is what became of the calls of a project, of a model or with a key, or of all.
type History struct {
	By      string    `json:"by"` // "minute", "hour" or "day"
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Project string    `json:"project,omitempty"`
	Model   string    `json:"model,omitempty"`
	Key     string    `json:"key,omitempty"`
	Points  []Point   `json:"points"` // oldest first, without gaps
}

// Point is what became of the calls of a minute, an hour or a day.
type Point struct {
	Time     time.Time         `json:"time"`   // when it began
	Passed   int64             `json:"passed"` // calls that were sent to a provider
	Denied   int64             `json:"denied"`
	Waited   int64             `json:"waited"` // calls that have waited for their turn
	Input    int64             `json:"input_tokens"`
	Output   int64             `json:"output_tokens"`
	Dollars  price.Amount      `json:"dollars"`
	DeniedBy []figures.Denials `json:"denied_by,omitempty"` // by which limits; only minutes have it
}

func (a *Admin) history(r *http.Request) (any, error) {
	q, err := parameters(r, "project", "model", "key", "by", "since", "until")
	if err != nil {
		return nil, err
	}
	h := History{By: q.Get("by"), Project: q.Get("project"), Model: q.Get("model"), Key: q.Get("key")}
	switch h.By {
	case "", "minute":
		h.By = "minute"
		return a.minutes(q, h)
	case "hour", "day":
		return a.booked(r.Context(), q, h)
	}
	return nil, problemf(http.StatusBadRequest, "by is %.40q: it must be one of minute, hour, day", h.By)
}

// minutes fills in the history of the last 60 minutes.
func (a *Admin) minutes(q url.Values, h History) (any, error) {
	now := time.Now().UTC()
	w := books.Words{Since: q.Get("since"), Until: q.Get("until")}
	if w.Since == "" {
		w.Since = "1h"
	}
	query, err := w.Query(now)
	if err != nil {
		return nil, invalid(err)
	}
	h.Points = []Point{}
	for _, p := range a.gateway.Figures().History(h.includes) {
		if at := p.Time.Unix(); at+60 <= query.Since || query.Until != 0 && at >= query.Until {
			continue
		}
		h.Points = append(h.Points, Point{p.Time, p.Passed, p.Denied, p.Waited, p.Input, p.Output, price.Amount(p.Dollars), p.Denials()})
	}
	h.Since, h.Until = time.Unix(query.Since, 0).UTC(), now.Truncate(time.Second)
	if query.Until != 0 {
		h.Until = time.Unix(query.Until, 0).UTC()
	}
	return h, nil
}

// includes reports whether the history includes the calls of a name.
func (h *History) includes(n figures.Name) bool {
	return (h.Project == "" || n.Project == h.Project || strings.HasPrefix(n.Project, h.Project+"/")) &&
		(h.Model == "" || n.Model == h.Model) && (h.Key == "" || n.Key == h.Key)
}

// booked fills in the history by the hour or the day, from the books.
func (a *Admin) booked(ctx context.Context, q url.Values, h History) (any, error) {
	now := time.Now().UTC()
	w := books.Words{By: h.By + ",model,key", Since: q.Get("since"), Until: q.Get("until"), Project: h.Project}
	if w.Since == "" {
		w.Since = map[string]string{"hour": "24h", "day": "30d"}[h.By]
	}
	query, err := w.Query(now)
	if err != nil {
		return nil, invalid(err)
	}
	sum, err := a.gateway.Usage(ctx, query)
	switch {
	case errors.Is(err, gateway.ErrNoBooks):
		return nil, problemf(http.StatusNotFound, "the gateway keeps no books: its configuration says books: off")
	case errors.Is(err, books.ErrTooMany):
		return nil, invalid(err)
	case err != nil:
		return nil, err
	}
	report := gateway.NewUsageReport(query, sum, now)
	h.Since, h.Until, h.Points = report.Since, report.Until, []Point{}
	for _, row := range report.Rows {
		if h.Model != "" && row.Model != h.Model || h.Key != "" && row.Key != h.Key {
			continue
		}
		if n := len(h.Points); n == 0 || !h.Points[n-1].Time.Equal(row.Time) {
			h.Points = append(h.Points, Point{Time: row.Time})
		}
		p := &h.Points[len(h.Points)-1]
		p.Passed += row.Requests
		p.Denied += row.Denied
		p.Waited += row.Waited
		p.Input += row.Input
		p.Output += row.Output
		p.Dollars += row.Dollars
	}
	return h, nil
}

// History returns what became of calls. The words are those of the parameters: see [books.Words].
func (c *Client) History(ctx context.Context, q url.Values) (History, error) {
	return get[History](ctx, c, http.MethodGet, "/v1/history?"+q.Encode(), nil)
}
