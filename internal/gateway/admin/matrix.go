package admin

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/price"
)

// Matrix is which project uses how much of which model.
type Matrix struct {
	Time    time.Time `json:"time"`
	Minutes int       `json:"minutes"` // over which sums are: 15
	Cells   []Cell    `json:"cells"`   // those with the most tokens in 15 minutes first
	Total   int       `json:"total"`   // how many cells there are
	OfFleet
}

// Cell is what a project has used of a model. Projects below it have cells of their own.
type Cell struct {
	Project string       `json:"project"`
	Model   string       `json:"model"`
	Calls   int64        `json:"calls_per_minute"`  // that were sent to the provider in the last minute
	Tokens  int64        `json:"tokens_per_minute"` // in the last minute
	Sum     int64        `json:"tokens"`            // in 15 minutes
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
	all := gatherWith(r.Context(), a, "figures", nil, a.ownFigures(math.MaxInt))
	for _, own := range all.answers {
		for i := range own.Lots {
			if lot := &own.Lots[i]; lot.Model != "" {
				at(lot.Project, lot.Model).add(&lot.Recent)
			}
		}
		for _, w := range own.Waiting {
			if w.Model != "" {
				at(w.Project, w.Model).Waiting += w.Count
			}
		}
	}
	m := Matrix{OfFleet: all.OfFleet, Time: time.Now().UTC(), Minutes: figures.Window, Cells: make([]Cell, 0, len(cells)), Total: len(cells)}
	for _, c := range cells {
		m.Cells = append(m.Cells, *c)
	}
	slices.SortFunc(m.Cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Waiting, a.Waiting),
			cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Model, b.Model))
	})
	m.Cells = m.Cells[:min(n, len(m.Cells))]
	return m, nil
}

// add adds calls of the last 15 minutes.
func (c *Cell) add(r *figures.Recent) {
	c.Calls += r.Minute.Passed
	c.Tokens += r.Minute.Input + r.Minute.Output
	c.Sum += r.Input + r.Output
	c.Dollars += price.Amount(r.Dollars)
	c.Denied += r.Denied
}
