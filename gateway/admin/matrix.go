package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/figures"
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
	sums := map[pair]*figures.Sum{}
	a.gateway.Figures().Each(func(of figures.Name, r *figures.Recent) {
		at := pair{of.Project, of.Model}
		if of.Model == "" {
			return
		}
		if sums[at] == nil {
			sums[at] = new(figures.Sum)
		}
		sums[at].Add(&r.Sum)
	})
	m := Matrix{Time: time.Now().UTC(), Minutes: figures.Window, Cells: []Cell{}, Total: len(sums)}
	for at, sum := range sums {
		m.Cells = append(m.Cells, Cell{
			Project: at.project, Model: at.model, Denied: sum.Denied, Dollars: price.Amount(sum.Dollars),
			Calls: perMinute(sum.Passed), Tokens: perMinute(sum.Input + sum.Output),
		})
	}
	slices.SortFunc(m.Cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Model, b.Model))
	})
	m.Cells = m.Cells[:min(n, len(m.Cells))]
	return m, nil
}

func perMinute(n int64) float64 { return float64(n) / figures.Window }

// Matrix returns which project uses how much of which model: the n cells with the most tokens.
func (c *Client) Matrix(ctx context.Context, n int) (Matrix, error) {
	return get[Matrix](ctx, c, http.MethodGet, "/v1/matrix?limit="+strconv.Itoa(n), nil)
}
