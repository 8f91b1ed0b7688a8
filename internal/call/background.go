package call

import (
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// single has the facts by which a single call is settled, beside those of a batch.
type single struct {
	Kind   llm.Provider `json:"kind"`
	API    dialect.API  `json:"api"`
	Tier   string       `json:"tier,omitempty"`   // that the request asks for
	Draws  string       `json:"draws,omitempty"`  // see [dialect.Request]
	Quota  string       `json:"quota"`            // the name of the quota that was charged
	Once   bool         `json:"once,omitempty"`   // see SearchesOnce of [dialect.Request]
	Stored bool         `json:"stored,omitempty"` // see StoredTools of [dialect.Request]
	Where  string       `json:"where,omitempty"`  // the provider's own path to the response; empty: only clients can fetch it
	Days   int64        `json:"days,omitempty"`   // see [dialect.Request]
	Before int64        `json:"before,omitempty"` // see [dialect.Request]
}

// Background returns a call that the provider goes on with after its answer as a batch of one call, which its
// response settles when somebody fetches it. From then on only the batch can be settled. where is the provider's own
// path to the response, if the gateway can fetch it with an account of its own, or "".
func (c *Call) Background(where string) *Batch {
	b := &Batch{
		Limits: c.Limits, Prices: c.Prices, Provider: c.priceProvider(), Owner: c.Owner,
		single: &single{c.Request.Provider, c.Request.API, c.Request.Tier, c.Request.ImageModel, c.Model, c.Request.SearchesOnce, c.Request.StoredTools, where, c.Request.Days, c.Request.Before},
		at:     c.quoted.at, prices: map[string]*price.Price{c.Request.Model: c.quoted.price},
		expected: Total{
			Calls: 1, Used: llm.Usage{Input: c.Tokens.Input, Output: c.Tokens.Output}, Units: c.Request.Units, Dollars: int64(c.reserved),
		},
		reservation: c.reservation,
		owners:      engine.OwnersOf(&c.Call),
	}
	c.addCharge(llm.Tokens{Input: -1, Output: -1}, c.reserved)
	c.reservation, c.Cost = nil, c.reserved
	return b
}

// Where returns the provider's own path to the response of a single call, or "", and the API that it is of: see
// [Call.Background].
func (b *Batch) Where() (path string, api dialect.API) {
	if b.single == nil {
		return "", ""
	}
	return b.single.Where, b.single.API
}

// SettleCall settles a call that the provider has made in the background, by the usage that its response reports.
func (b *Batch) SettleCall(used llm.Usage) {
	if b.single == nil {
		return
	}
	c := &Call{Limits: b.Limits, Prices: b.Prices, Provider: b.Provider}
	c.Request = dialect.Request{Endpoint: dialect.Endpoint{Provider: b.single.Kind, API: b.single.API}, Tier: b.single.Tier, ImageModel: b.single.Draws, Units: b.expected.Units, SearchesOnce: b.single.Once, StoredTools: b.single.Stored, Days: b.single.Days, Before: b.single.Before}
	for c.Request.Model = range b.prices { // it has one
	}
	c.quoteAt(b.at)
	used = c.withUnits(used)
	q, _ := b.Limits.Models.Quota(b.single.Quota)
	t := Total{Exact: true, Units: used.Units}
	t.add(used, c.usedPrice(used))
	b.settled.Do(func() { b.commit(&t, dialect.TokensOf(used, b.single.Kind, q.Count)) })
}
