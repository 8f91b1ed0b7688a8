package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/price"
)

// Matrix is which project uses how much of which model.
type Matrix struct {
	Time    time.Time `json:"time"`
	Minutes int       `json:"minutes"` // over which the figures are: 15
	Cells   []Cell    `json:"cells"`   // those with the most tokens first
	Total   int       `json:"total"`   // how many cells there are
}

// Cell is what a project has used of a model. Projects inside of it have cells of their own.
type Cell struct {
	Project string       `json:"project"`
	Model   string       `json:"model"`
	Calls   float64      `json:"calls_per_minute"` // that were sent to the provider
	Tokens  float64      `json:"tokens_per_minute"`
	Dollars price.Amount `json:"dollars"`
	Waiting int          `json:"waiting"` // calls that wait now
	Denied  int64        `json:"denied"`
}

type pair struct{ project, model string }

func (a *Admin) matrix(r *http.Request) (any, error) {
	q, err := parameters(r, "limit")
	if err != nil {
		return nil, err
	}
	n, err := pageSize(q)
	if err != nil {
		return nil, err
	}
	cells := map[pair]*Cell{}
	at := func(project, model string) *Cell {
		c := cells[pair{project, model}]
		if c == nil {
			c = &Cell{Project: project, Model: model}
			cells[pair{project, model}] = c
		}
		return c
	}
	a.gateway.Figures().Each(func(of figures.Name, r *figures.Recent) {
		if of.Model != "" {
			at(of.Project, of.Model).add(&r.Sum)
		}
	})
	a.gateway.Models().EachWaiting(func(project, model string, _ time.Duration) {
		if model != "" {
			at(project, model).Waiting++
		}
	})
	m := Matrix{Time: time.Now().UTC(), Minutes: figures.Window, Cells: make([]Cell, 0, len(cells)), Total: len(cells)}
	for _, c := range cells {
		m.Cells = append(m.Cells, *c)
	}
	slices.SortFunc(m.Cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Waiting, a.Waiting),
			cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Model, b.Model))
	})
	m.Cells = m.Cells[:min(n, len(m.Cells))]
	return m, nil
}

// add adds calls of the last 15 minutes.
func (c *Cell) add(s *figures.Sum) {
	c.Calls += float64(s.Passed) / figures.Window
	c.Tokens += float64(s.Input+s.Output) / figures.Window
	c.Dollars += price.Amount(s.Dollars)
	c.Denied += s.Denied
}

// Matrix returns which project uses how much of which model: the n cells with the most tokens.
func (c *Client) Matrix(ctx context.Context, n int) (Matrix, error) {
	return get[Matrix](ctx, c, http.MethodGet, "/v1/matrix?limit="+strconv.Itoa(n), nil)
}
