package call

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/price"
)

// batchNote is what a process must know of a batch that another one has deposited, to settle it by its
// results.
type batchNote struct {
	Provider string        `json:"provider"`
	Models   []string      `json:"models"`
	At       time.Time     `json:"at"` // by which everything is priced
	Expected Total         `json:"expected"`
	Owner    *books.Owner  `json:"owner,omitempty"`
	Owners   engine.Owners `json:"owners"`
	Single   *single       `json:"single,omitempty"`
	Told     batchTold     `json:"told,omitzero"`
}

// Deposit lets the store keep the batch under an id, so that any process that shares the store can settle
// it. After an error the batch is still to be settled.
func (b *Batch) Deposit(ctx context.Context, id string) error {
	if b.reservation == nil { // nothing was taken
		return nil
	}
	note, err := json.Marshal(batchNote{b.Provider, b.Models(), b.at, b.expected, b.Owner, b.owners, b.single, b.told})
	if err != nil {
		return fmt.Errorf("ratelimit: the batch cannot be kept: %w", err)
	}
	return (*engine.Reservation)(b.reservation).Deposit(ctx, id, note)
}

// FindBatch returns the batch that was deposited under an id or a name, with its id. The
// batch is nil if there is none, or if it cannot be read.
func FindBatch(ctx context.Context, limits *Limits, prices *Prices, name string) (b *Batch, id string, err error) {
	d, err := hidden.Of[engine.Projects](limits.Projects).FindDeposit(ctx, name)
	if d == nil {
		return nil, "", err
	}
	var n batchNote
	if err == nil {
		if fault := json.Unmarshal(d.Note, &n); fault != nil {
			err = fmt.Errorf("%w: %w", accounts.ErrDeposit, fault)
		}
	}
	if err != nil {
		return nil, d.ID, err
	}
	b = &Batch{
		Limits: limits, Prices: prices, Provider: n.Provider, Owner: n.Owner,
		at: n.At, prices: map[string]*price.Price{}, expected: n.Expected, deposit: d, owners: n.Owners, single: n.Single, told: n.Told,
	}
	for _, model := range n.Models[:min(len(n.Models), maxModels)] {
		b.prices[model] = prices.of(n.Provider, model, n.At)
	}
	return b, d.ID, nil
}
