package admin

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
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
	OfFleet
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
		return a.minutes(r.Context(), q, h)
	case "hour", "day":
		return a.booked(r.Context(), q, h)
	}
	return nil, problemf(http.StatusBadRequest, "by is %.40q: it must be one of minute, hour, day", h.By)
}

// query returns the times that a client asks for, and fills them in. Without since, they begin the
// default time ago.
func (h *History) query(q url.Values, since string, now time.Time) (books.Query, error) {
	w := books.Words{Since: cmp.Or(q.Get("since"), since), Until: q.Get("until"), Project: h.Project}
	query, err := w.Query(now)
	if err != nil {
		return query, invalid(err)
	}
	h.Since, h.Until = time.Unix(query.Since, 0).UTC(), now.Truncate(time.Second).Add(time.Second) // this second counts
	if query.Until != 0 {
		h.Until = time.Unix(query.Until, 0).UTC()
	}
	return query, nil
}

// minutes fills in the history of the last 60 minutes.
func (a *Admin) minutes(ctx context.Context, q url.Values, h History) (any, error) {
	if _, err := h.query(q, "1h", time.Now().UTC()); err != nil {
		return nil, err
	}
	all, err := gather[[]Point](ctx, a, "history", q)
	if err != nil {
		return nil, err
	}
	byTime := map[int64]Point{}
	for _, of := range all.answers {
		for _, p := range of {
			sum, ok := byTime[p.Time.Unix()]
			if !ok {
				sum.Time = p.Time
			}
			sum.addPoint(&p)
			byTime[p.Time.Unix()] = sum
		}
	}
	h.OfFleet, h.Points = all.OfFleet, []Point{}
	for _, at := range slices.Sorted(maps.Keys(byTime)) {
		if p := byTime[at]; p.Time.Add(time.Minute).After(h.Since) && p.Time.Before(h.Until) {
			h.Points = append(h.Points, p)
		}
	}
	return h, nil
}

// ownMinutes returns the last 60 minutes of one gateway.
func (a *Admin) ownMinutes(q url.Values) (any, error) {
	h := History{Project: q.Get("project"), Model: q.Get("model"), Key: q.Get("key")}
	points := []Point{}
	for _, p := range a.gateway.Figures().History(h.includes) {
		points = append(points, Point{p.Time, p.Passed, p.Denied, p.Waited, p.Input, p.Output, price.Amount(p.Dollars), p.Denials()})
	}
	return points, nil
}

// addPoint adds what became of calls in the same minute at another gateway.
func (p *Point) addPoint(other *Point) {
	p.Passed += other.Passed
	p.Denied += other.Denied
	p.Waited += other.Waited
	p.Input += other.Input
	p.Output += other.Output
	p.Dollars += other.Dollars
	by := map[string]int64{}
	for _, d := range append(slices.Clone(p.DeniedBy), other.DeniedBy...) {
		by[d.Limit] += d.Count
	}
	p.DeniedBy = figures.SortedDenials(by)
}

// includes reports whether the history includes the calls of a name.
func (h *History) includes(n figures.Name) bool {
	return (h.Project == "" || n.Project == h.Project || strings.HasPrefix(n.Project, h.Project+"/")) &&
		(h.Model == "" || n.Model == h.Model) && (h.Key == "" || n.Key == h.Key)
}

// maxPoints is how many points a history may have.
const maxPoints = 10_000

// booked fills in the history by the hour or the day, from the books.
func (a *Admin) booked(ctx context.Context, q url.Values, h History) (any, error) {
	since, step := "24h", time.Hour
	if h.By == "day" {
		since, step = "30d", 24*time.Hour
	}
	query, err := h.query(q, since, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	first := h.Since.Truncate(step)
	if n := h.Until.Sub(first) / step; n >= maxPoints {
		return nil, problemf(http.StatusBadRequest, "these are %d points: a history may have %d; ask for less time, or by day", n+1, maxPoints)
	}
	query.By, query.Key = []books.Dimension{books.Dimension(h.By)}, h.Key
	if h.Model != "" {
		query.OfModel = func(model string) bool { return a.gateway.ChargedTo(model, h.Model) }
	}
	report, err := a.report(ctx, query)
	if err != nil {
		return nil, err
	}
	h.Points = []Point{}
	for at := first; at.Before(h.Until); at = at.Add(step) {
		p := Point{Time: at}
		for len(report.Rows) > 0 && report.Rows[0].Time.Before(at.Add(step)) {
			p.add(&report.Rows[0])
			report.Rows = report.Rows[1:]
		}
		h.Points = append(h.Points, p)
	}
	return h, nil
}

// add adds a row of the books.
func (p *Point) add(row *UsageRow) {
	p.Passed += row.Requests
	p.Denied += row.Denied
	p.Waited += row.Waited
	p.Input += row.Input
	p.Output += row.Output
	p.Dollars += row.Dollars
}
